# SPDX-License-Identifier: Apache-2.0
"""Shelving on this host: a server becomes an image, and later its guest goes, or is started again."""

from __future__ import annotations

from typing import Any

from oslo_config import cfg

from nova_lite.compute.snapshots import Snapshots
from nova_lite.exception import NovaLiteError
from nova_lite.network.driver import NetworkDriver
from nova_lite.objects import instance as states
from nova_lite.objects.action import ActionRequest
from nova_lite.virt.driver import Driver


class Shelver:
    """Shelves servers of one compute process."""

    def __init__(self, conf: cfg.ConfigOpts, driver: Driver, network: NetworkDriver, snapshots: Snapshots) -> None:
        self._conf = conf
        self._driver = driver
        self._network = network
        self._snapshots = snapshots

    def shelve(self, request: ActionRequest) -> dict[str, Any]:
        """Power the server off and make an image of it.

        A guest that runs powers off before, so that its disk is whole; one whose CPUs stand still changes nothing, and
        keeps its memory until the image is there. So a failure leaves either as it was.
        """
        instance, runs = request.instance, request.arguments["was"] == states.ACTIVE
        if runs:
            self._driver.power_off(instance, self._conf.compute.shutdown_timeout)
        try:
            result = self._snapshots.take(request, states.SHELVING_IMAGE_UPLOADING)
        except NovaLiteError:
            if runs:
                self._driver.power_on(instance)
            raise
        if not runs:
            self._driver.power_off(instance, 0)
        return result

    def offload(self, request: ActionRequest) -> None:
        """Remove the guest of a server that is kept as an image."""
        self._driver.destroy(request.instance)
        self._network.disconnect(request.instance)

    def unshelve(self, request: ActionRequest) -> None:
        """Start a server that has kept its place."""
        self._driver.power_on(request.instance)
