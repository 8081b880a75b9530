# SPDX-License-Identifier: Apache-2.0
"""Launchpad 1996732: good hosts are shunned after anti-affinity races.

A member that loses its race at the host was counted as a build that failed there, and hosts with failures are avoided.
Here a race is lost before anything is built, and is nobody's failure.
"""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from nova_lite.db.models import compute_nodes
from tests.fixtures import races
from tests.fixtures.client import Client
from tests.fixtures.cloud import Cloud


@pytest.mark.long
def test_twenty_races_leave_the_records_clean(three_hosts: Cloud, client: Client) -> None:
    races.anti_affinity_rounds(three_hosts, rounds=20, count=4, places=3)
    engine = sa.create_engine(three_hosts.database)
    with engine.connect() as conn:
        assert set(conn.execute(sa.select(compute_nodes.c.failed_builds)).scalars()) == {0}
    engine.dispose()
    services = client.get("/os-services?binary=nova-compute")["services"]
    assert {service["status"] for service in services} == {"enabled"}
