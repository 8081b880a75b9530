# SPDX-License-Identifier: Apache-2.0
"""What every resource class of the api works with: options, database and the buses' clients."""

from __future__ import annotations

from dataclasses import dataclass

from oslo_config import cfg

from nova_lite.compute.rpcapi import ComputeAPI
from nova_lite.conductor.rpcapi import ConductorAPI
from nova_lite.db.session import Database


@dataclass(frozen=True)
class Services:
    """Handed to the constructor of each resource class; made once a process, after it has forked."""

    conf: cfg.ConfigOpts
    db: Database
    conductor: ConductorAPI
    compute: ComputeAPI
