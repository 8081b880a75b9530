# SPDX-License-Identifier: Apache-2.0
"""The request context: who asks, for which project, and the request id that follows the request through every hop."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from oslo_context import context


class RequestContext(context.RequestContext):
    """oslo.context's context; nova_lite adds nothing but types and short constructors."""

    @classmethod
    def from_wire(cls, values: dict[str, Any]) -> RequestContext:
        return cls.from_dict(values)


class _Detached(RequestContext):
    """A context that is only sent along; the logs of the thread that makes it are none of its business."""

    def update_store(self) -> None:
        pass


def service_context(request_id: str | None = None) -> RequestContext:
    """Make the context of a message about work that no user waits for, or about many requests at once.

    :param request_id: the id of the request that is being continued, or None for a new one.
    """
    return _Detached(is_admin=True, request_id=request_id)


@contextmanager
def continuing(request_id: str | None) -> Iterator[None]:
    """Put the id of a stored request into what this thread logs."""
    before = context.get_current()
    RequestContext(is_admin=True, request_id=request_id)
    try:
        yield
    finally:
        # oslo.context has no way to leave a thread without a context; one that was there is put back.
        if before is not None:
            before.update_store()
        else:
            RequestContext(is_admin=True, request_id="-")
