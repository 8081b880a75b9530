# SPDX-License-Identifier: Apache-2.0
"""Rescues on this host: a server boots from another image, with its own disk beside that, until it is unrescued."""

from __future__ import annotations

from oslo_config import cfg

from nova_lite.compute.spawner import Spawner
from nova_lite.objects.action import ActionRequest
from nova_lite.objects.image import Image
from nova_lite.virt.driver import Driver


class Rescuer:
    """Rescues servers of one compute process."""

    def __init__(self, conf: cfg.ConfigOpts, driver: Driver, spawner: Spawner) -> None:
        self._conf = conf
        self._driver = driver
        self._spawner = spawner

    def rescue(self, request: ActionRequest) -> None:
        """Boot the server from the image that the request names; that is fetched while the server still runs.

        :raises RescueFailed, BuildFailed: the server is what it was.
        """
        image = self._spawner.fetch(Image(**request.arguments["image"]), 0)
        self._driver.rescue(request.instance, image, self._conf.compute.shutdown_timeout)

    def unrescue(self, request: ActionRequest) -> None:
        """Boot the server from its own disk again."""
        self._driver.unrescue(request.instance)
