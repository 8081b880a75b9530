# SPDX-License-Identifier: Apache-2.0
"""From what is known of a server to its guest on this host: image, network, config drive, domain."""

from __future__ import annotations

from pathlib import Path

from oslo_config import cfg
from oslo_log import log

from nova_lite import exception
from nova_lite.compute.metadata import MetadataDrive
from nova_lite.image.cache import ImageCache
from nova_lite.network.driver import Addresses, NetworkDriver
from nova_lite.objects.image import Image
from nova_lite.objects.instance import Instance
from nova_lite.virt.driver import ConfigDrive, Driver, Vif

LOG = log.getLogger(__name__)


class Spawner:
    """Makes guests; each call may be repeated."""

    def __init__(self, conf: cfg.ConfigOpts, driver: Driver, network: NetworkDriver, images: ImageCache) -> None:
        self._conf = conf
        self._driver = driver
        self._network = network
        self._images = images

    def fetch(self, image: Image | None, root_gb: int) -> Path | None:
        """Return the image's file in the cache; None if the hypervisor needs none.

        :raises BuildFailed: it could not be had, or does not fit a root disk of root_gb GiB.
        """
        if image is None or not self._driver.needs_image:
            return None
        return self._images.get(image, root_gb)

    def spawn(self, instance: Instance) -> Addresses:
        """Make the guest, and return its addresses.

        :raises BuildFailed: with the reason that the user reads; nothing is left behind.
        """
        image = self.fetch(instance.image, instance.flavor.root_gb)
        vifs, drive, addresses = self.connect(instance)
        try:
            self._driver.spawn(instance, image, vifs, drive)
        except Exception:
            self._network.disconnect(instance)
            raise
        return addresses

    def fetch_if_there(self, instance: Instance) -> Path | None:
        """Return the image's file in the cache; None if it is gone, as for a server whose image was deleted since."""
        try:
            return self.fetch(instance.image, 0)
        except exception.BuildFailed as error:
            LOG.info("image not to be had instance=%s reason=%s", instance.uuid, error)
            return None

    def connect(self, instance: Instance) -> tuple[list[Vif], ConfigDrive | None, Addresses]:
        """Connect the instance on this host, and return its interfaces, its config drive if it has one, its addresses.

        :raises BuildFailed: it cannot be connected here.
        """
        vifs, network_data, addresses = self._network.connect(instance)
        # Nothing else tells a guest its address.
        asked = instance.config_drive or instance.injected_files
        if asked or instance.ports or self._conf.compute.force_config_drive:
            return vifs, MetadataDrive(instance, network_data), addresses
        return vifs, None, addresses
