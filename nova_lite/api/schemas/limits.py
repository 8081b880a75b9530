# SPDX-License-Identifier: Apache-2.0
"""Request schemas of limits."""

from __future__ import annotations

from nova_lite.api.microversion import Versioned
from nova_lite.api.validation import Schema, multi, query_of

_QUERY: Schema = {"tenant_id": multi({"type": "string", "maxLength": 255}), "reserved": multi({"type": "string"})}
SHOW = Versioned({"2.1": query_of(_QUERY), "2.75": query_of(_QUERY, strict=True)})
