# SPDX-License-Identifier: Apache-2.0
"""What requests for a server's metadata may look like."""

from __future__ import annotations

from nova_lite.api import validation as v

METADATA = v.obj({"metadata": v.METADATA}, ("metadata",))
ITEM = v.obj({"meta": {**v.METADATA, "minProperties": 1, "maxProperties": 1}}, ("meta",))
