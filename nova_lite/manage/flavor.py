# SPDX-License-Identifier: Apache-2.0
"""nova-lite-manage flavor: the first flavors of a new cloud, before anybody can log in."""

from __future__ import annotations

import argparse
import uuid

from oslo_config import cfg

from nova_lite import exception
from nova_lite.db import flavors, migration
from nova_lite.manage.db import opened
from nova_lite.objects.flavor import Flavor


def add_to(nouns: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    verbs = nouns.add_parser("flavor", help="create flavors").add_subparsers(dest="verb", metavar="VERB", required=True)
    create = verbs.add_parser("create", help="create a flavor that every project may use")
    create.add_argument("name", help="the flavor's name, as m1.tiny")
    create.add_argument("--id", help="the flavor's id (default: a new UUID)")
    create.add_argument("--ram", type=_at_least(1), required=True, metavar="MIB", help="MiB of memory")
    create.add_argument("--disk", type=_at_least(0), required=True, metavar="GIB", help="GiB of disk")
    create.add_argument("--vcpus", type=_at_least(1), required=True, metavar="N", help="virtual CPUs")
    create.add_argument("--exist-ok", action="store_true", help="a flavor that is there already is no error")
    create.set_defaults(run=_create)


class _at_least:  # noqa: N801 - reads as the type that it makes
    """An argparse type: a whole number that is no smaller than this."""

    def __init__(self, least: int) -> None:
        self._least = least

    def __call__(self, text: str) -> int:
        if not text.isdecimal() or not self._least <= int(text) < 1 << 31:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least {self._least}")
        return int(text)


def _create(arguments: argparse.Namespace, conf: cfg.ConfigOpts) -> None:
    flavor = Flavor(
        flavorid=arguments.id or str(uuid.uuid4()),
        name=arguments.name,
        vcpus=arguments.vcpus,
        memory_mb=arguments.ram,
        root_gb=arguments.disk,
    )
    with opened(conf) as database:
        migration.check(database)
        try:
            database.write(lambda conn: flavors.create(conn, flavor))
        except exception.Conflict as taken:
            if not arguments.exist_ok:
                raise
            print(taken)
            return
    print(f"Flavor {flavor.name} has the id {flavor.flavorid}.")
