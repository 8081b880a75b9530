# SPDX-License-Identifier: Apache-2.0
"""nova-lite-api: serves the Compute API, and without Keystone and Glance the little of theirs that clients need."""

from __future__ import annotations

import sys

from nova_lite import conf, service
from nova_lite.api.manager import ApiService


def main() -> None:
    options = conf.load(sys.argv[1:], "nova-lite-api")
    service.run(options, lambda: ApiService(options), options.api.workers)
