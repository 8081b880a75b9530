# SPDX-License-Identifier: Apache-2.0
"""The storm of tools/bench, short: a full cloud of many processes on RabbitMQ and MariaDB keeps every promise."""

from __future__ import annotations

import argparse

from tests.fixtures.mariadb import MariaDB
from tests.fixtures.rabbitmq import RabbitMQ
from tools.benchmarks import figures, storm
from tools.benchmarks.infrastructure import Infrastructure

PROMISES = {
    "refused or stuck requests",
    "contradictions in the books",
    "double bookings",
    "broken groups",
    'wrong "no"',
    "leaks",
}


def test_a_short_storm_breaks_no_promise(mariadb: MariaDB, rabbitmq: RabbitMQ) -> None:
    parser = argparse.ArgumentParser()
    storm.add_arguments(parser)
    options = parser.parse_args(["--seconds", "20", "--schedulers", "3", "--conductors", "2", "--clients", "2"])
    [result] = storm.run(options, Infrastructure(mariadb, rabbitmq, None, None))
    print(figures.table(result))
    by_name = {figure.name: figure for figure in result.figures}
    assert {name: by_name[name].value for name in PROMISES} == dict.fromkeys(PROMISES, 0)
    assert all(figure.is_reached is not False for figure in result.figures)
    # It was a storm: the cloud was full, and it was looked at.
    assert min(by_name[name].value for name in ("ACTIVE", "told no", "refusals judged", "looks at the books")) >= 5
