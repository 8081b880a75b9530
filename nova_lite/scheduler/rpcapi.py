# SPDX-License-Identifier: Apache-2.0
"""The client of the schedulers: any of them answers."""

from __future__ import annotations

from collections.abc import Sequence

from nova_lite import rpc
from nova_lite.context import RequestContext
from nova_lite.objects.request_spec import RequestSpec
from nova_lite.objects.selection import Selection


class SchedulerAPI:
    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._client = rpc.client(rpc.SCHEDULER, timeout)

    def select_destinations(self, context: RequestContext, specs: Sequence[RequestSpec]) -> list[Selection]:
        """Choose a host for each request and write its grant; answers come in the order of the requests.

        A scheduler that does not get to all of them in time answers what it has, and the others undecided.

        :raises rpc.Timeout: no scheduler answered; calling again is safe, since a consumer's older grants go away.
        """
        return self._client.call(context, "select_destinations", specs=list(specs), patience=self._timeout)
