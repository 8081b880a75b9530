# SPDX-License-Identifier: Apache-2.0
"""What queries for the actions on a server may look like, at each microversion."""

from __future__ import annotations

from nova_lite.api import validation as v
from nova_lite.api.microversion import Versioned

_TIME = v.single({"type": "string", "format": "date-time", "maxLength": 64})
_PAGED = {"limit": v.single(v.QUERY_INTEGER), "marker": v.single({"type": "string", "maxLength": 255})}

LIST = Versioned(
    {
        "2.1": v.NO_QUERY,
        "2.58": v.query_of({**_PAGED, "changes-since": _TIME}, strict=True),
        "2.66": v.query_of({**_PAGED, "changes-since": _TIME, "changes-before": _TIME}, strict=True),
    }
)
