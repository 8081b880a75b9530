# SPDX-License-Identifier: Apache-2.0
"""A small compute control plane that speaks the OpenStack Compute API.

Importing it settles one thing for the whole process: oslo.messaging loads oslo.service, which takes eventlet unless it
is told otherwise before; everything here runs on threads.
"""

import sys
from types import ModuleType
from typing import cast

__version__ = "0.1.0"

# A library beneath looks for eventlet all the same, and would spend a sixth of every program's start on loading it. For
# whoever has not loaded it yet, it is not there.
sys.modules.setdefault("eventlet", cast(ModuleType, None))

from oslo_service import backend  # noqa: E402

backend.init_backend(backend.BackendType.THREADING)
