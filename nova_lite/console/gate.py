# SPDX-License-Identifier: Apache-2.0
"""Who may see which screen: a token is looked up in the books, and the screen's place asked of the server's host.

The place is asked for anew each time, and must be the one that the token was made for: ports of screens are given to
the next guest as soon as one ends, and an old token must never show it.
"""

from __future__ import annotations

from oslo_config import cfg
from oslo_log import log

from nova_lite import exception, rpc
from nova_lite.compute.rpcapi import ComputeAPI
from nova_lite.context import service_context
from nova_lite.db import console_tokens, instances, registry
from nova_lite.db.console_tokens import Console
from nova_lite.db.session import Database
from nova_lite.objects.diagnostics import Screen

LOG = log.getLogger(__name__)


class Refused(Exception):
    """The token opens nothing; the message is for whoever has it."""


_NOT_VALID = "The token is not valid, or not any more. Ask the API for a new console."


class Gate:
    """Lets connections in, each with its token."""

    def __init__(self, conf: cfg.ConfigOpts, db: Database, compute: ComputeAPI) -> None:
        self._conf = conf
        self._db = db
        self._compute = compute

    def admit(self, token: str) -> Screen:
        """Use the token, and return where its screen is.

        :raises Refused: it does not hold, or the screen is not there any more.
        """
        reuse = self._conf.consoles.reuse_tokens
        try:
            console = self._db.read(lambda conn: console_tokens.find(conn, token, reuse))
            if console is None or self._screen(console) != Screen(console.host, console.port):
                raise Refused(_NOT_VALID)
            used = console
            if not self._db.write(lambda conn: console_tokens.use(conn, used, reuse)):
                raise Refused(_NOT_VALID)
        except (rpc.Error, exception.NovaLiteError) as error:
            LOG.warning("console refused reason=%s", error)
            raise Refused("The server's host does not answer. Try again later.") from error
        LOG.info("console opened instance=%s", console.instance_uuid)
        return Screen(console.host, console.port)

    def _screen(self, console: Console) -> Screen | None:
        row = self._db.read(lambda conn: instances.get(conn, console.instance_uuid))
        hosts, down_time = [console.compute_host], self._conf.service_down_time
        servers = self._db.read(lambda conn: registry.compute_servers(conn, hosts, down_time))
        server, is_up = servers.get(console.compute_host, ("", False))
        if not is_up:
            raise exception.ServiceUnavailable(host=console.compute_host)
        return self._compute.screen(service_context(), server, instances.to_object(row))
