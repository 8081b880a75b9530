# SPDX-License-Identifier: Apache-2.0
"""nova-lite-manage drain: empty a host, look how far that is, stop it."""

from __future__ import annotations

import argparse

from oslo_config import cfg

from nova_lite.db import drains, migration
from nova_lite.db.drains import Drain, State
from nova_lite.db.session import Database
from nova_lite.manage import table
from nova_lite.manage.db import opened


def add_to(nouns: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = nouns.add_parser("drain", help="empty hosts of their servers")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    start = verbs.add_parser("start", help="disable a host's compute service, and move its servers away")
    start.add_argument("host")
    start.add_argument("--parallel", type=_count, default=2, help="servers that move at once (default: 2)")
    start.set_defaults(run=_start)
    cancel = verbs.add_parser("cancel", help="stop: servers that have not begun to move stay")
    cancel.add_argument("host")
    cancel.set_defaults(run=_cancel)
    verbs.add_parser("list", help="list drains with their progress").set_defaults(run=_list)
    show = verbs.add_parser("show", help="show what is left on a host, and what moves away from it")
    show.add_argument("host")
    show.set_defaults(run=_show)


def _count(text: str) -> int:
    number = int(text)
    if not 1 <= number <= 100:
        raise argparse.ArgumentTypeError("it must be from 1 to 100")
    return number


def _start(arguments: argparse.Namespace, conf: cfg.ConfigOpts) -> None:
    with opened(conf) as database:
        migration.check(database)
        drain = database.write(lambda conn: drains.start(conn, arguments.host, arguments.parallel))
    print(f"Draining {drain.host}: {drain.servers} servers, {drain.parallel} at once. Its compute service is disabled.")


def _cancel(arguments: argparse.Namespace, conf: cfg.ConfigOpts) -> None:
    with opened(conf) as database:
        migration.check(database)
        drain = database.write(lambda conn: drains.cancel(conn, arguments.host))
    service = "stays disabled, as it was before" if drain.was_disabled else "is enabled again"
    print(f"No longer draining {drain.host}. What moves already arrives; its compute service {service}.")


def _list(_arguments: argparse.Namespace, conf: cfg.ConfigOpts) -> None:
    with opened(conf) as database:
        migration.check(database)
        found = database.read(drains.search)
        rows = [(*_progress(database, drain), drain.message) for drain in found]
    print(table.render(("host", "status", "began with", "left", "moving", "since", "waits for"), rows))


def _progress(database: Database, drain: Drain) -> tuple[object, ...]:
    began = drain.created_at.isoformat(sep=" ", timespec="seconds")
    if drain.status != drains.ACTIVE:
        return drain.host, drain.status, drain.servers, None, None, began
    state = database.read(lambda conn: drains.state(conn, drain))
    return drain.host, drain.status, drain.servers, len(state.servers), len(_under_way(state)), began


def _under_way(state: State) -> set[str]:
    return {move.instance_uuid for move in state.moving}


def _show(arguments: argparse.Namespace, conf: cfg.ConfigOpts) -> None:
    with opened(conf) as database:
        migration.check(database)
        found = [drain for drain in database.read(drains.search) if drain.host == arguments.host]
        if not found:
            print(f"Host {arguments.host} was never drained.")
            return
        state = database.read(lambda conn: drains.state(conn, found[-1]))
    moving = {move.instance_uuid: move for move in state.moving}
    failed = {move.instance_uuid: move.message for move in state.failed}
    rows = [
        (
            server.uuid,
            server.name,
            server.vm_state,
            moving[server.uuid].status if server.uuid in moving else "waits",
            moving[server.uuid].dest_compute if server.uuid in moving else None,
            failed.get(server.uuid),
        )
        for server in state.servers
    ]
    print(f"{found[-1].host} is {found[-1].status}: {len(rows)} of {found[-1].servers} servers left.")
    print(table.render(("server", "name", "state", "move", "to", "failed before"), rows))
