# SPDX-License-Identifier: Apache-2.0
"""nova-lite-manage service: which services there are, and whether they are alive."""

from __future__ import annotations

import argparse

from oslo_config import cfg

from nova_lite.db import migration, service_status
from nova_lite.manage import table
from nova_lite.manage.db import opened


def add_to(nouns: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    verbs = nouns.add_parser("service", help="look at the services").add_subparsers(
        dest="verb", metavar="VERB", required=True
    )
    verbs.add_parser("list", help="list services with their state").set_defaults(run=_list)


def _list(_arguments: argparse.Namespace, conf: cfg.ConfigOpts) -> None:
    with opened(conf) as database:
        migration.check(database)
        found = database.read(lambda conn: service_status.read(conn, conf.service_down_time))
    rows = [
        (
            service.binary,
            service.host,
            "disabled" if service.disabled else "enabled",
            "forced down" if service.forced_down else "up" if service.is_up else "down",
            f"{service.silent_for:.0f} s ago",
            service.disabled_reason,
        )
        for service in found
    ]
    print(table.render(("binary", "host", "status", "state", "last seen", "reason"), rows))
