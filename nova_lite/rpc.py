# SPDX-License-Identifier: Apache-2.0
"""The bus: oslo.messaging set up once, for RabbitMQ (``rabbit://``) or in memory (``fake://``).

Every message carries the request's context, and so its request id; values travel typed (objects.wire). Nothing else
imports oslo.messaging.
"""

from __future__ import annotations

import threading
from typing import Any

import kombu.connection
import kombu.exceptions
import oslo_messaging as messaging
from oslo_config import cfg
from oslo_log import log
from oslo_messaging import opts

from nova_lite import bus_tls, exception
from nova_lite.context import RequestContext
from nova_lite.objects import wire

LOG = log.getLogger(__name__)

EXCHANGE = "nova_lite"
CONDUCTOR, SCHEDULER, COMPUTE = "conductor", "scheduler", "compute"
VERSION = "1.0"
_RABBIT = "oslo_messaging_rabbit"

Error = messaging.MessagingException
Timeout = messaging.MessagingTimeout

# Connection attempts before a message counts as not sent; the waits between them grow from a second.
_SEND_TRIES = 2

_lock = threading.Lock()
_conf: cfg.ConfigOpts | None = None
_transport: messaging.Transport | None = None
_notifier: messaging.Notifier | None = None


class _Serializer(messaging.Serializer):
    """Contexts as dicts, values as objects.wire has them."""

    def serialize_entity(self, ctxt: Any, entity: Any) -> Any:
        return wire.to_wire(entity)

    def deserialize_entity(self, ctxt: Any, entity: Any) -> Any:
        return wire.from_wire(entity)

    def serialize_context(self, ctxt: RequestContext) -> dict[str, Any]:
        return ctxt.to_dict()

    def deserialize_context(self, ctxt: dict[str, Any]) -> RequestContext:
        return RequestContext.from_wire(ctxt)


def default_to(conf: cfg.ConfigOpts, url: str) -> None:
    """Use this bus if the configuration names none."""
    messaging.TransportURL.parse(conf)  # registers the option
    conf.set_default("transport_url", url)


def start(conf: cfg.ConfigOpts) -> None:
    """Connect this process to the bus; to be called after the process has forked.

    Every service of a process does so, and they share one bus. :raises RuntimeError: it is connected to another one.
    """
    global _conf, _transport, _notifier
    with _lock:
        if _transport is not None and _conf is not conf:
            raise RuntimeError("this process is on a bus of another configuration already; rpc.stop() leaves it")
        _conf = conf
        if _transport is None:
            messaging.set_transport_defaults(EXCHANGE)
            _transport = messaging.get_rpc_transport(conf, allowed_remote_exmods=[exception.__name__])
            _notifier = messaging.Notifier(
                messaging.get_notification_transport(conf),
                publisher_id=conf.host,
                topics=["notifications"],
                retry=0,
            )


def register_rabbit(conf: cfg.ConfigOpts) -> None:
    """Register the options of RabbitMQ's driver, as oslo.messaging does when it connects."""
    conf.register_opts(dict(opts.list_opts())[_RABBIT], group=_RABBIT)


def check(conf: cfg.ConfigOpts) -> None:
    """Make sure that the broker answers; called once when a process starts.

    :raises BusUnavailable: with a one-line reason that holds no password.
    """
    url = messaging.TransportURL.parse(conf)
    if not url.transport.startswith("rabbit"):
        return
    register_rabbit(conf)
    failures = []
    for host in url.hosts:
        where = f"{host.hostname}:{host.port or 5672}"
        connection = kombu.connection.Connection(
            transport="pyamqp",
            hostname=host.hostname,
            port=host.port,
            userid=host.username,
            password=host.password,
            virtual_host=url.virtual_host or "/",
            connect_timeout=5,
            ssl=bus_tls.options(conf[_RABBIT]),
        )
        try:
            with connection:
                connection.connect()
            return
        except (OSError, kombu.exceptions.KombuError, *connection.connection_errors) as error:
            failures.append(f"{where}: {str(error) or type(error).__name__}")
    raise exception.BusUnavailable(reason="; ".join(failures))


def stop() -> None:
    """Leave the bus."""
    global _transport, _notifier
    with _lock:
        if _transport is not None:
            _transport.cleanup()
        _transport = _notifier = None


def transport() -> messaging.Transport:
    if _transport is None:
        raise RuntimeError("rpc.start() has not been called")
    return _transport


def client(topic: str, timeout: float | None = None) -> messaging.RPCClient:
    """Make a client of a topic; its calls raise Timeout after so many seconds.

    A broker that is away raises Error after a few tries: the rows are there, and a sweep does what a lost hint did not.
    """
    target = messaging.Target(topic=topic, version=VERSION)
    return messaging.get_rpc_client(transport(), target, serializer=_Serializer(), timeout=timeout, retry=_SEND_TRIES)


def serve(topic: str, name: str, endpoint: object, workers: int) -> messaging.RPCServer:
    """Start a server of a topic; it is stopped with ``stop()`` and ``wait()``.

    :param name: the server's own name on the topic.
    :param workers: threads that serve messages.
    """
    server = messaging.get_rpc_server(
        transport(),
        messaging.Target(topic=topic, server=name),
        [endpoint],
        serializer=_Serializer(),
        access_policy=messaging.ExplicitRPCAccessPolicy,
    )
    server.start(override_pool_size=workers)
    return server


expose = messaging.expose
endpoint_target = messaging.Target(version=VERSION)


def notify(context: RequestContext, event_type: str, payload: dict[str, Any], error: bool = False) -> None:
    """Emit a notification. It is a courtesy: a broker that is away costs a warning, not the operation."""
    if _notifier is None:
        return
    try:
        (_notifier.error if error else _notifier.info)(context.to_dict(), event_type, payload)
    except messaging.MessagingException as failure:
        LOG.warning("notification lost event=%s reason=%s", event_type, failure)
