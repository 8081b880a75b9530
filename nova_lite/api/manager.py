# SPDX-License-Identifier: Apache-2.0
"""The api process: an HTTP server around the WSGI application, with its ways to the database and the bus."""

from __future__ import annotations

from oslo_config import cfg

from nova_lite import rpc
from nova_lite.api.app import WSGIApp, make_app
from nova_lite.api.server import Server
from nova_lite.api.services import Services
from nova_lite.compute.rpcapi import ComputeAPI
from nova_lite.conductor.rpcapi import ConductorAPI
from nova_lite.db.session import Database
from nova_lite.service import Service


def connect(conf: cfg.ConfigOpts) -> tuple[Database, WSGIApp]:
    """Make the application of this process, and its ways to the database and the bus, which first use opens."""
    rpc.start(conf)
    db = Database(conf)
    return db, make_app(Services(conf, db, ConductorAPI(), ComputeAPI()))


class ApiService(Service):
    """One api; any number may run."""

    name = "api"

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf

    def start(self) -> None:
        self._db, app = connect(self._conf)
        self._server = Server(self._conf, app)
        self._server.start()

    def stop(self) -> None:
        self._server.stop()
        self._db.close()
