# SPDX-License-Identifier: Apache-2.0
"""The state of the hosts that servers are on, as the API shows it with a server."""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa

from nova_lite.db.clock import now
from nova_lite.db.models import services
from nova_lite.db.registry import COMPUTE

UP, DOWN, MAINTENANCE, UNKNOWN = "UP", "DOWN", "MAINTENANCE", "UNKNOWN"


def by_host(conn: sa.Connection, hosts: Collection[str], down_time: float) -> dict[str, str]:
    """Return host -> state of the compute services on the hosts.

    :param down_time: seconds without a heartbeat after which a service's state is unknown.
    """
    if not hosts:
        return {}
    state = sa.case(
        (services.c.forced_down.is_(True), DOWN),
        (services.c.disabled.is_(True), MAINTENANCE),
        (services.c.last_seen_at > now(-down_time), UP),
        else_=UNKNOWN,
    )
    statement = sa.select(services.c.host, state).where(
        services.c.binary == COMPUTE, services.c.host.in_(sorted(hosts))
    )
    return {row[0]: row[1] for row in conn.execute(statement)}
