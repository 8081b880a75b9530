# SPDX-License-Identifier: Apache-2.0
"""The services as an operator wants to see them: who is alive, by the database's clock."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from nova_lite.db.clock import Timestamp, now
from nova_lite.db.models import services


@dataclass(frozen=True, slots=True)
class ServiceStatus:
    """silent_for is in seconds since the last heartbeat."""

    binary: str
    host: str
    disabled: bool
    disabled_reason: str | None
    forced_down: bool
    is_up: bool
    silent_for: float


def read(conn: sa.Connection, down_time: float) -> list[ServiceStatus]:
    """Read all services, by binary and host.

    :param down_time: seconds without a heartbeat after which a service counts as down.
    """
    statement = sa.select(
        services.c.binary,
        services.c.host,
        services.c.disabled,
        services.c.disabled_reason,
        services.c.forced_down,
        services.c.last_seen_at,
        sa.type_coerce(now(), Timestamp),
    ).order_by(services.c.binary, services.c.host)
    found = []
    for binary, host, disabled, reason, forced_down, last_seen_at, at in conn.execute(statement):
        silent_for = (at - last_seen_at).total_seconds()
        is_up = not forced_down and silent_for < down_time
        found.append(ServiceStatus(binary, host, disabled, reason, forced_down, is_up, silent_for))
    return found
