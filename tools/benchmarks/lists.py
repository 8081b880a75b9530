# SPDX-License-Identifier: Apache-2.0
"""lists: seconds and SQL statements of a page of servers, by how many servers there are.

The api is asked in this process through WSGI, with a token and the policies but without HTTP, on SQLite.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nova_lite import conf, policy, rpc
from nova_lite.api import microversion
from tests.fixtures.many_servers import fill, server_uuid
from tests.fixtures.statements import statements
from tests.fixtures.whole_api import WholeAPI, write_users
from tools.benchmarks.figures import Figure, Result
from tools.benchmarks.infrastructure import Infrastructure

NEEDS_SERVERS = False
_VERSIONS = (str(microversion.MINIMUM), "2.96", str(microversion.MAXIMUM))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--servers", type=_numbers, default=[1000, 10_000, 100_000], help="N,N,... (default: 1000,10000,100000)"
    )
    parser.add_argument("--limit", type=int, default=1000, help="servers on a page (default: 1000)")
    parser.add_argument("--asks", type=int, default=5, help="times that each page is asked for (default: 5)")


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def run(options: argparse.Namespace, infrastructure: Infrastructure) -> list[Result]:
    return [_run(options, servers) for servers in options.servers]


def _run(options: argparse.Namespace, servers: int) -> Result:
    with tempfile.TemporaryDirectory(prefix="nova-lite-bench-") as directory, _api(Path(directory)) as api:
        fill(api.db, api.project["blue"], servers)
        page = f"limit={min(options.limit, servers)}"
        middle = f"{page}&marker={server_uuid(servers // 2)}"
        figures = []
        for version in _VERSIONS:
            figures += _ask(api, options.asks, f"details at {version}", f"/servers/detail?{page}", version)
        newest = _VERSIONS[-1]
        figures += _ask(api, options.asks, "details, from the middle", f"/servers/detail?{middle}", newest)
        figures += _ask(api, options.asks, "details of one tag", f"/servers/detail?{page}&tags=blue", newest)
        figures += _ask(api, options.asks, "ids and names", f"/servers?{page}", newest)
    return Result("lists", {"servers": servers, "limit": options.limit, "asks": options.asks}, figures)


@contextmanager
def _api(directory: Path) -> Iterator[WholeAPI]:
    write_users(directory)
    file = directory / "bus.conf"
    file.write_text("[DEFAULT]\ntransport_url = fake://\n")
    conf.register()
    conf.CONF([], default_config_files=[str(file)], default_config_dirs=[])
    rpc.start(conf.CONF)
    api = WholeAPI(directory, directory, api__max_limit=100_000)
    try:
        yield api
    finally:
        api.close()
        policy.reset()
        rpc.stop()
        conf.CONF.reset()


def _ask(api: WholeAPI, asks: int, name: str, path: str, version: str) -> list[Figure]:
    """Ask several times, and once before that is not counted; show the median of what it took."""
    seconds, cpu = [], []
    api.good("GET", f"/v2.1{path}", user="alice", version=version)
    with statements() as found:
        for _number in range(asks):
            began, used = time.perf_counter(), time.process_time()
            api.good("GET", f"/v2.1{path}", user="alice", version=version)
            seconds.append(time.perf_counter() - began)
            cpu.append(time.process_time() - used)
    return [
        Figure(name, 1000 * statistics.median(seconds), "ms"),
        Figure(f"... CPU, {name}", 1000 * statistics.median(cpu), "ms"),
        Figure(f"... statements, {name}", len(found) / asks),
    ]
