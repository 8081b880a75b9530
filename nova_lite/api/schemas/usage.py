# SPDX-License-Identifier: Apache-2.0
"""Request schemas of usage."""

from __future__ import annotations

from nova_lite.api.microversion import Versioned
from nova_lite.api.validation import PAGE, Schema, multi, query_of

_SEARCH: Schema = {name: multi({"type": "string"}) for name in ("start", "end", "detailed")}

SEARCH = Versioned(
    {
        "2.1": query_of(_SEARCH),
        "2.40": query_of({**_SEARCH, **PAGE}),
        "2.75": query_of({**_SEARCH, **PAGE}, strict=True),
    }
)
