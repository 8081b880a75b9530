# SPDX-License-Identifier: Apache-2.0
"""A small compute control plane that speaks the OpenStack Compute API.

Importing it settles one thing for the whole process: oslo.messaging loads oslo.service, which takes eventlet unless it
is told otherwise before; everything here runs on threads.
"""

import warnings

from oslo_service import backend

__version__ = "0.1.0"

# A library beneath looks for eventlet all the same, and warns users of a thing that is not used here.
warnings.filterwarnings("ignore", message=r"\s*Eventlet is deprecated")
backend.init_backend(backend.BackendType.THREADING)
