# SPDX-License-Identifier: Apache-2.0
"""Keystone's tokens: keystonemiddleware around the application, which lets everything through and marks what it found.

By itself it takes every token for invalid while Keystone is away: users would be told that they are not who they are,
and clients would throw good tokens away. Here such a request is marked, and answered 503.
"""

from __future__ import annotations

from typing import Any

from keystoneauth1 import exceptions as keystone_errors
from keystonemiddleware import auth_token
from keystonemiddleware import exceptions as middleware_errors
from oslo_config import cfg
from oslo_log import log

from nova_lite.api.auth import KEYSTONE_UNREACHABLE

LOG = log.getLogger(__name__)

# Seconds that Keystone may take to answer; keystonemiddleware by itself would keep a thread waiting for ever.
_TIMEOUT = 30

_FAILURES = (keystone_errors.ClientException, middleware_errors.KeystoneMiddlewareException)


class _Unreachable(Exception):
    """Keystone did not say whether the token is valid."""


class _Middleware(auth_token.AuthProtocol):
    def fetch_token(self, token: str, **more: Any) -> Any:
        """:raises _Unreachable: instead of calling the token invalid."""
        try:
            return super().fetch_token(token, **more)
        except keystone_errors.ClientException as error:
            raise _Unreachable(str(error)) from error
        except middleware_errors.KeystoneMiddlewareException as error:
            # That of a token that was not checked was raised while something else was being handled.
            cause = error.__context__
            if isinstance(cause, keystone_errors.NotFound) or not isinstance(cause, _FAILURES):
                raise
            raise _Unreachable(str(error)) from error

    def process_request(self, request: Any) -> Any:
        try:
            return super().process_request(request)
        except _Unreachable as error:
            LOG.error("tokens cannot be checked reason=%s", error)
            request.environ[KEYSTONE_UNREACHABLE] = True
            return None


def with_keystone(app: Any, conf: cfg.ConfigOpts) -> Any:
    """Wrap a WSGI app into keystonemiddleware; requests without a valid token still come through, marked so."""
    for group, options in auth_token.list_opts():
        conf.register_opts(options, group=group)
        conf.set_default("http_connect_timeout", _TIMEOUT, group=group)
    # The kind of service is what access rules of application credentials are about.
    settings = {"oslo_config_config": conf, "delay_auth_decision": True, "service_type": "compute"}
    return _Middleware(app, settings)
