# SPDX-License-Identifier: Apache-2.0
"""nova-lite-manage db: the schema."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator

from oslo_config import cfg

from nova_lite.db import migration
from nova_lite.db.session import Database


def add_to(nouns: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    verbs = nouns.add_parser("db", help="create or upgrade the database's schema").add_subparsers(
        dest="verb", metavar="VERB", required=True
    )
    sync = verbs.add_parser("sync", help="bring the schema up to date; safe to repeat, and from several machines")
    sync.set_defaults(run=_sync)
    version = verbs.add_parser("version", help="show which version the schema has, and which one is expected")
    version.set_defaults(run=_version)


@contextlib.contextmanager
def opened(conf: cfg.ConfigOpts) -> Iterator[Database]:
    """Open the configured database for one command; one that does not answer is an error at once.

    :raises DatabaseUnavailable: with a one-line reason.
    """
    database = Database(conf)
    try:
        database.check()
        yield database
    finally:
        database.close()


def _sync(_arguments: argparse.Namespace, conf: cfg.ConfigOpts) -> None:
    with opened(conf) as database:
        before = migration.version(database)
        migration.sync(database)
        after = migration.version(database)
    print(f"The schema has version {after}" + (" already." if before == after else f" (before: {before or 'none'})."))


def _version(_arguments: argparse.Namespace, conf: cfg.ConfigOpts) -> None:
    with opened(conf) as database:
        found = migration.version(database)
    print(f"{found or 'none'} (expected: {migration.expected_version()})")
