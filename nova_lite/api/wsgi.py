# SPDX-License-Identifier: Apache-2.0
"""The api for a WSGI server of the operator's choice: gunicorn, uWSGI, mod_wsgi. Importing this makes the application.

The configuration is the one that nova-lite-api would find by itself, or that of the files in OS_NOVA_LITE_CONFIG_FILES
(separated by semicolons), for a WSGI server keeps the command line for itself. As programs do, it refuses to come up
without database and bus. It leaves their connections to the first request, so that a server may fork before or after.
"""

from __future__ import annotations

import atexit
import os

from nova_lite import conf, rpc, service
from nova_lite.api.app import WSGIApp
from nova_lite.api.manager import connect

CONFIG_FILES = "OS_NOVA_LITE_CONFIG_FILES"


def _make() -> WSGIApp:
    """:raises NovaLiteError: database or bus cannot be worked with; the message says what to do."""
    files = [name for name in os.environ.get(CONFIG_FILES, "").split(";") if name]
    options = conf.load([], "nova-lite-api", files or None)
    service.check(options)
    db, app = connect(options)
    atexit.register(db.close)
    atexit.register(rpc.stop)
    return app


application = _make()
