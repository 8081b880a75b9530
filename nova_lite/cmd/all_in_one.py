# SPDX-License-Identifier: Apache-2.0
"""nova-lite-all-in-one: a whole cloud as threads of one process, on SQLite and the in-memory bus by default.

It runs the same services as the separate processes do, as many conductors and schedulers as they are configured to
have workers, and keeps the schema of a SQLite database current by itself.
"""

from __future__ import annotations

import os
import sys

from oslo_config import cfg

from nova_lite import conf, exception, rpc, service
from nova_lite.api.manager import ApiService
from nova_lite.compute.manager import ComputeService
from nova_lite.conductor.manager import ConductorService
from nova_lite.console.manager import ConsoleProxyService
from nova_lite.db import migration
from nova_lite.db.session import Database
from nova_lite.scheduler.manager import SchedulerService


def services(options: cfg.ConfigOpts) -> list[service.Service]:
    """Make the services in the order in which they start."""
    return [
        *(ConductorService(options) for _ in range(options.conductor.workers)),
        *(SchedulerService(options) for _ in range(options.scheduler.workers)),
        ComputeService(options),
        ApiService(options),
        *([ConsoleProxyService(options)] if options.novnc.enabled else []),
    ]


def main() -> None:
    options = conf.load(sys.argv[1:], "nova-lite-all-in-one")
    rpc.default_to(options, "fake://")
    try:
        os.makedirs(options.state_path, exist_ok=True)
        db = Database(options)
        if db.dialect == "sqlite":
            migration.sync(db)
        db.close()
    except (exception.NovaLiteError, OSError) as error:
        service.fail(options, error)
    service.run_alone(options, services(options))
