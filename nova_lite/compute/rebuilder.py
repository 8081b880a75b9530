# SPDX-License-Identifier: Apache-2.0
"""Rebuilds on this host: the old guest ends, and one of the same server is made from an image, in the same place.

The image is fetched and checked while the old guest still runs: what can go wrong with it costs nothing. Once the old
disks are gone there is no way back; a process that dies then leaves a server without a guest, and whoever repeats the
rebuild makes it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nova_lite.compute.actor import Untouched
from nova_lite.compute.spawner import Spawner
from nova_lite.exception import NovaLiteError
from nova_lite.objects import instance as states
from nova_lite.objects.action import ActionRequest
from nova_lite.virt.driver import Driver


class Rebuilder:
    """Rebuilds servers of one compute process.

    :param progress: is told the operation and its new task_state.
    """

    def __init__(self, driver: Driver, spawner: Spawner, progress: Callable[[str, str], None]) -> None:
        self._driver = driver
        self._spawner = spawner
        self._progress = progress

    def rebuild(self, request: ActionRequest) -> dict[str, Any]:
        """Make the server's guest anew.

        :raises Untouched: the old guest is what it was.
        :raises BuildFailed: there is no guest any more.
        """
        instance = request.instance
        try:
            self._spawner.fetch(instance.image, instance.flavor.root_gb)
            self._driver.destroy(instance)
        except NovaLiteError as error:
            if self._driver.power_state(instance) == states.NOSTATE:
                raise
            raise Untouched(str(error)) from error
        self._progress(request.operation, states.REBUILD_SPAWNING)
        addresses = self._spawner.spawn(instance)
        if request.arguments.get("stopped"):
            self._driver.power_off(instance, 0)
        return {"addresses": addresses}
