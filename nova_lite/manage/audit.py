# SPDX-License-Identifier: Apache-2.0
"""nova-lite-manage audit: whether the books, the groups, the quotas and the domains agree, and mending what does not.

The exit status is 0 if nothing is found (or nothing is left, with --fix), and 2 if something is.
"""

from __future__ import annotations

import argparse
import datetime
import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from oslo_config import cfg

from nova_lite import audit, exception, rpc
from nova_lite.audit import Finding
from nova_lite.compute.rpcapi import ComputeAPI
from nova_lite.context import service_context
from nova_lite.db import audit as rows
from nova_lite.db import migration, operations
from nova_lite.db.audit import Snapshot
from nova_lite.db.session import Database
from nova_lite.manage.db import opened
from nova_lite.objects.instance import DomainInfo

FOUND = 2
_CALL_TIMEOUT = 10.0


@dataclass
class _Domains:
    """What the computes said. skipped holds a sentence for each that was not asked, or did not answer.

    at is the database's time before any was asked.
    """

    hosts: list[str] = field(default_factory=list)
    domains: list[DomainInfo] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    at: datetime.datetime | None = None


def add_to(nouns: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = nouns.add_parser(
        "audit",
        help="prove that books, groups, quotas and domains agree",
        description="Reads everything in one snapshot and lists what contradicts what, since when, and what --fix "
        "would do about it. Changes nothing without --fix. The exit status is 2 if something is found.",
    )
    parser.add_argument("--fix", action="store_true", help="mend what can be mended, each after another look")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--patience",
        type=float,
        default=audit.PATIENCE,
        metavar="SECONDS",
        help="leave out what is younger and ends by itself, as a grant of a server that was just deleted does "
        f"(default: {audit.PATIENCE:.0f}; 0 for a cloud at rest)",
    )
    parser.add_argument(
        "--domains",
        action=argparse.BooleanOptionalAction,
        help="ask the computes for their domains, and fail if the bus does not answer (default: ask if it does)",
    )
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace, conf: cfg.ConfigOpts) -> int:
    with opened(conf) as database:
        migration.check(database)
        said = _Domains() if arguments.domains is False else _ask(conf, database, arguments.domains)
        found = _find(database, said, arguments.patience)
        mended: list[Finding] = []
        if arguments.fix:
            mended = [finding for finding in found if audit.repair(database, finding)]
            found = _find(database, said, arguments.patience)
    if arguments.json:
        _print_json(found, mended, said)
    else:
        _print(found, mended, said)
    return FOUND if found else 0


def _find(database: Database, said: _Domains, patience: float) -> list[Finding]:
    snapshot = audit.look(database, patience)
    return [*audit.find(snapshot), *_find_in_domains(database, snapshot, said)]


def _find_in_domains(database: Database, snapshot: Snapshot, said: _Domains) -> list[Finding]:
    unknown = [domain.uuid for domain in said.domains if domain.uuid not in snapshot.servers]
    deleted = database.read(lambda conn: rows.deleted_servers(conn, unknown)) if unknown else {}
    return audit.find_in_domains(snapshot, said.hosts, said.domains, deleted, said.at)


# -- asking the computes


def _ask(conf: cfg.ConfigOpts, database: Database, insist: bool | None) -> _Domains:
    """Ask all computes that are up for their domains.

    :param insist: whether a bus that cannot be reached is an error.
    :raises BusUnavailable: if it is.
    """
    said = _Domains()
    rpc.default_to(conf, "rabbit://")
    if str(conf.transport_url or "").startswith("fake"):
        if insist:
            raise exception.BusUnavailable(reason="the bus is within the cloud's own process (fake://)")
        said.skipped.append("Domains were not looked at: the bus is within the cloud's own process (fake://).")
        return said
    try:
        rpc.check(conf)
    except exception.BusUnavailable as error:
        if insist:
            raise
        said.skipped.append(f"Domains were not looked at: {error}")
        return said
    rpc.start(conf)
    try:
        _ask_computes(conf, database, said)
    finally:
        rpc.stop()
    return said


def _ask_computes(conf: cfg.ConfigOpts, database: Database, said: _Domains) -> None:
    said.at = database.read(operations.database_time)
    servers = database.read(lambda conn: rows.compute_servers(conn, conf.service_down_time))
    computes = ComputeAPI(_CALL_TIMEOUT)
    for server, (hosts, up) in servers.items():
        if not up:
            said.skipped.append(f"Domains of {', '.join(hosts)} were not looked at: the compute is down.")
            continue
        try:
            said.domains += computes.domains(service_context(), server)
            said.hosts += hosts
        except (rpc.Error, exception.NovaLiteError) as error:
            said.skipped.append(f"Domains of {', '.join(hosts)} were not looked at: {str(error).splitlines()[0]}")


# -- telling


def _print(found: Sequence[Finding], mended: Sequence[Finding], said: _Domains) -> None:
    for finding in mended:
        print(f"Mended {finding.kind} {finding.subject}: {finding.fix}.")
    for finding in found:
        since = f" Since {finding.since:%Y-%m-%d %H:%M:%S} UTC at the latest." if finding.since else ""
        fix = f"--fix would {finding.fix}." if finding.fix else "This needs a decision; --fix leaves it."
        print(f"{finding.kind} {finding.subject}\n    {finding.sentence}{since}\n    {fix}")
    for sentence in said.skipped:
        print(sentence)
    print(f"{len(found)} finding{'s' * (len(found) != 1)}." if found else "No contradiction found.")


def _print_json(found: Sequence[Finding], mended: Sequence[Finding], said: _Domains) -> None:
    document = {
        "findings": [_document(finding) for finding in found],
        "mended": [_document(finding) for finding in mended],
        "skipped": said.skipped,
    }
    print(json.dumps(document, indent=2))


def _document(finding: Finding) -> dict[str, str | None]:
    return {
        "kind": finding.kind,
        "subject": finding.subject,
        "sentence": finding.sentence,
        "since": finding.since.isoformat() if finding.since else None,
        "fix": finding.fix,
    }
