# SPDX-License-Identifier: Apache-2.0
"""nova-lite-conductor: a conductor process; any number may run."""

from __future__ import annotations

import sys

from nova_lite import conf, service
from nova_lite.conductor.manager import ConductorService


def main() -> None:
    options = conf.load(sys.argv[1:], "nova-lite-conductor")
    service.run(options, lambda: ConductorService(options), options.conductor.workers)
