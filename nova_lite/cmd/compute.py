# SPDX-License-Identifier: Apache-2.0
"""nova-lite-compute: the compute process of a host. It needs the bus and the hypervisor, and no database."""

from __future__ import annotations

import sys

from nova_lite import conf, service
from nova_lite.compute.manager import ComputeService


def main() -> None:
    options = conf.load(sys.argv[1:], "nova-lite-compute")
    service.run_alone(options, [ComputeService(options)], needs_database=False)
