# SPDX-License-Identifier: Apache-2.0
"""What kombu is told about TLS, for those who speak to RabbitMQ past oslo.messaging: the same that oslo.messaging does.

The options are oslo.messaging's own, in [oslo_messaging_rabbit].
"""

from __future__ import annotations

import ssl
from typing import Any


def options(rabbit: Any) -> bool | dict[str, Any]:
    """Return the parameter ssl of a kombu connection.

    With a CA file the broker's certificate must be of that CA and for the name that is connected to; without, of a CA
    that the system trusts.

    :param rabbit: the group [oslo_messaging_rabbit], in which ssl and ssl_*_file are registered.
    """
    if not rabbit.ssl:
        return False
    found: dict[str, Any] = {}
    if rabbit.ssl_key_file:
        found["keyfile"] = rabbit.ssl_key_file
    if rabbit.ssl_cert_file:
        found["certfile"] = rabbit.ssl_cert_file
    if rabbit.ssl_ca_file:
        # kombu puts the host's name in the place of None.
        found.update(ca_certs=rabbit.ssl_ca_file, cert_reqs=ssl.CERT_REQUIRED, server_hostname=None)
    return found or True
