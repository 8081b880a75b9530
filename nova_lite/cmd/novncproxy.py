# SPDX-License-Identifier: Apache-2.0
"""nova-lite-novncproxy: shows servers' screens in browsers, to whoever has a token of the API."""

from __future__ import annotations

import sys

from nova_lite import conf, service
from nova_lite.console.manager import ConsoleProxyService


def main() -> None:
    options = conf.load(sys.argv[1:], "nova-lite-novncproxy")
    service.run_alone(options, [ConsoleProxyService(options)])
