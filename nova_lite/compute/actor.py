# SPDX-License-Identifier: Apache-2.0
"""Actions on servers of this host, from stop to delete; each looks at what is true and goes on from there.

An order may come late, to a host that was cut off and whose servers live elsewhere by now. So each one but a delete,
which is never taken back, is asked about before it is carried out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from oslo_config import cfg
from oslo_log import log

from nova_lite import exception, rpc
from nova_lite.batching import Batcher, answering_nothing
from nova_lite.compute.instance_locks import InstanceLocks
from nova_lite.compute.work import Work
from nova_lite.context import continuing
from nova_lite.network.driver import NetworkDriver
from nova_lite.objects.action import ActionOutcome, ActionRequest
from nova_lite.virt.driver import Driver

LOG = log.getLogger(__name__)

_THREADS = 16

# Does an action, and returns what is to be told of it beside the power state.
Kind = Callable[[ActionRequest], dict[str, Any] | None]


class Untouched(exception.NovaLiteError):
    """An action failed before it did anything: the server is what it was."""


class Actor:
    """Runs the actions of one compute process, those on one server one after the other."""

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        driver: Driver,
        network: NetworkDriver,
        locks: InstanceLocks,
        work: Work,
        report: Callable[[Sequence[ActionOutcome]], None],
        ask: Callable[[Sequence[str]], Sequence[bool]],
        more: Mapping[str, Kind],
    ) -> None:
        """Get ready.

        :param ask: tells of operations whether they are still to be done.
        :param more: what does the kinds of actions that this class does not know.
        """
        self._conf = conf
        self._driver = driver
        self._network = network
        self._locks = locks
        self._work = work
        self._kinds: dict[str, Kind] = {
            **more,
            "delete": self._delete,
            "stop": self._stop,
            "start": self._start,
            "reboot": self._reboot,
            "pause": lambda request: driver.pause(request.instance),
            "unpause": lambda request: driver.unpause(request.instance),
            "suspend": lambda request: driver.suspend(request.instance),
            "resume": lambda request: driver.resume(request.instance),
        }
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="act")
        self._outcomes: Batcher[ActionOutcome, None] = Batcher(
            "action-outcomes", answering_nothing(report), 100, threads=2
        )
        self._questions: Batcher[str, bool] = Batcher("action-questions", ask, 100, threads=2)

    def act(self, requests: Sequence[ActionRequest]) -> None:
        """Accept actions; those that are already being worked on are left alone."""
        for request in requests:
            if self._work.begin(request.operation):
                if request.kind == "delete":
                    self._work.doom(request.instance.uuid)
                self._pool.submit(self._act, request)

    def stop(self) -> None:
        """Finish what has been accepted."""
        self._pool.shutdown(wait=True)
        self._questions.stop()
        self._outcomes.stop()

    def destroy(self, request: ActionRequest) -> None:
        """Remove a domain for which there is proof that its server is deleted; nobody waits for an outcome."""
        with self._locks.holding(request.instance.uuid):
            self._delete(request)

    def _act(self, request: ActionRequest) -> None:
        # The outcome is reported under the lock, so that no later action or event overtakes it on the way.
        with continuing(request.request_id), self._locks.holding(request.instance.uuid):
            if request.kind == "delete" or self._is_wanted(request):
                outcome = self._attempt(request)
                reported = self._outcomes.submit([outcome])[0]
                reported.exception()
        self._work.end(request.operation)

    def _is_wanted(self, request: ActionRequest) -> bool:
        """Ask whether an order still holds; if nobody answers, the operation's lease brings it back."""
        try:
            wanted = self._questions.submit([request.operation])[0].result()
        except rpc.Error as error:
            LOG.warning("no conductor answered operation=%s reason=%s", request.operation, error)
            return False
        if not wanted:
            LOG.info("no longer to be done kind=%s instance=%s", request.kind, request.instance.uuid)
        return wanted

    def _attempt(self, request: ActionRequest) -> ActionOutcome:
        instance, reason, result = request.instance, "", None
        LOG.debug("act kind=%s instance=%s", request.kind, instance.uuid)
        try:
            kind = self._kinds.get(request.kind)
            if kind is None:
                raise exception.NotImplementedHere(what=f"the action {request.kind} on this host")
            result = kind(request)
            power_state = self._driver.power_state(instance)
        except Untouched as error:
            reason, power_state, result = str(error), self._state_after_failure(request), {"untouched": True}
        except exception.NovaLiteError as error:
            reason, power_state = str(error), self._state_after_failure(request)
        except Exception:
            LOG.exception("%s failed unexpectedly instance=%s", request.kind, instance.uuid)
            reason = "an unexpected error happened on the host; its log has the details"
            power_state = self._state_after_failure(request)
        return ActionOutcome(
            request.operation, request.kind, instance.uuid, instance.host, not reason, power_state, reason, result or {}
        )

    def _state_after_failure(self, request: ActionRequest) -> int:
        try:
            return self._driver.power_state(request.instance)
        except exception.NovaLiteError:
            return 0

    def _delete(self, request: ActionRequest) -> None:
        self._driver.destroy(request.instance)
        self._network.disconnect(request.instance)

    def _stop(self, request: ActionRequest) -> None:
        self._driver.power_off(request.instance, self._conf.compute.shutdown_timeout)

    def _start(self, request: ActionRequest) -> None:
        self._driver.power_on(request.instance)

    def _reboot(self, request: ActionRequest) -> None:
        hard = str(request.arguments.get("reboot_type", "SOFT")).upper() == "HARD"
        self._driver.reboot(request.instance, hard, self._conf.compute.shutdown_timeout)
