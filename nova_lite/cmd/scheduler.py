# SPDX-License-Identifier: Apache-2.0
"""nova-lite-scheduler: a scheduler process; any number may run."""

from __future__ import annotations

import sys

from nova_lite import conf, service
from nova_lite.scheduler.manager import SchedulerService


def main() -> None:
    options = conf.load(sys.argv[1:], "nova-lite-scheduler")
    service.run(options, lambda: SchedulerService(options), options.scheduler.workers)
