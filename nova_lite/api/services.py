# SPDX-License-Identifier: Apache-2.0
"""What every resource class of the api works with: options, database and the buses' clients."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from oslo_config import cfg
from stevedore import driver

from nova_lite.compute.rpcapi import ComputeAPI
from nova_lite.conductor.rpcapi import ConductorAPI
from nova_lite.db.session import Database
from nova_lite.image.driver import ImageCatalogue
from nova_lite.network import builtin
from nova_lite.objects.network import Network


@dataclass(frozen=True)
class Services:
    """Handed to the constructor of each resource class; made once a process, after it has forked."""

    conf: cfg.ConfigOpts
    db: Database
    conductor: ConductorAPI
    compute: ComputeAPI

    @functools.cached_property
    def network(self) -> Network | None:
        """The built-in network; None if there is none that hands addresses out."""
        return builtin.read(self.conf)

    @functools.cached_property
    def image_catalogue(self) -> ImageCatalogue | None:
        """Where images are looked up; None if that is the api's own database."""
        name = self.conf.image.driver
        if name == "directory":
            return None
        manager: driver.DriverManager[ImageCatalogue] = driver.DriverManager("nova_lite.image", name)
        return cast(Callable[[cfg.ConfigOpts], ImageCatalogue], manager.driver)(self.conf)
