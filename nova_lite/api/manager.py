# SPDX-License-Identifier: Apache-2.0
"""The api process: an HTTP server around the WSGI application, with its ways to the database and the bus."""

from __future__ import annotations

from oslo_config import cfg

from nova_lite import rpc
from nova_lite.api.app import make_app
from nova_lite.api.server import Server
from nova_lite.api.services import Services
from nova_lite.compute.rpcapi import ComputeAPI
from nova_lite.conductor.rpcapi import ConductorAPI
from nova_lite.db.session import Database
from nova_lite.service import Service


class ApiService(Service):
    """One api; any number may run."""

    name = "api"

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf

    def start(self) -> None:
        rpc.start(self._conf)
        self._db = Database(self._conf)
        services = Services(self._conf, self._db, ConductorAPI(), ComputeAPI())
        self._server = Server(self._conf, make_app(services))
        self._server.start()

    def stop(self) -> None:
        self._server.stop()
        self._db.close()
