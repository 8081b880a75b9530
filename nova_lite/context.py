# SPDX-License-Identifier: Apache-2.0
"""The request context: who asks, for which project, and the request id that follows the request through every hop."""

from __future__ import annotations

from typing import Any

from oslo_context import context


class RequestContext(context.RequestContext):
    """oslo.context's context; nova_lite adds nothing but types and short constructors."""

    @classmethod
    def from_wire(cls, values: dict[str, Any]) -> RequestContext:
        return cls.from_dict(values)


def service_context(request_id: str | None = None) -> RequestContext:
    """Make the context of work that no user asked for (periodic tasks, sweeps), or of a stored request.

    :param request_id: the id of the request that is being continued, or None for a new one.
    """
    return RequestContext(is_admin=True, request_id=request_id, overwrite=False)
