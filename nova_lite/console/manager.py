# SPDX-License-Identifier: Apache-2.0
"""The process of the console proxy, with its ways to the database and the bus."""

from __future__ import annotations

import threading

from oslo_config import cfg
from oslo_log import log

from nova_lite import rpc
from nova_lite.compute.rpcapi import ComputeAPI
from nova_lite.console.gate import Gate
from nova_lite.console.proxy import Proxy
from nova_lite.db.session import Database
from nova_lite.service import Service

LOG = log.getLogger(__name__)


class ConsoleProxyService(Service):
    """One proxy; any number may run, each at an address of its own or behind a balancer."""

    name = "novncproxy"

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf

    def start(self) -> None:
        rpc.start(self._conf)
        self._db = Database(self._conf)
        self._proxy = Proxy(self._conf, Gate(self._conf, self._db, ComputeAPI()))
        self._thread = threading.Thread(target=self._proxy.serve_forever, name="novncproxy", daemon=True)
        self._thread.start()
        LOG.info("console proxy listens host=%s port=%d novnc=%s", *self.address, self._proxy.web or "not installed")

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens, once it has been started."""
        host, port = self._proxy.server_address[:2]
        return str(host), int(port)

    def stop(self) -> None:
        self._proxy.shutdown()
        self._proxy.server_close()
        self._thread.join()
        self._db.close()
