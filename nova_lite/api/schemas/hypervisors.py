# SPDX-License-Identifier: Apache-2.0
"""Request schemas of hypervisors."""

from __future__ import annotations

from nova_lite.api.microversion import Versioned
from nova_lite.api.validation import BOOLEAN, NO_QUERY, PAGE, Schema, query_of, single

_SERVERS: Schema = {"with_servers": single(BOOLEAN)}
_SEARCH: Schema = {**_SERVERS, **PAGE, "hypervisor_hostname_pattern": single({"type": "string", "maxLength": 255})}

LIST = Versioned(
    {
        "2.1": NO_QUERY,
        "2.33": query_of(PAGE),
        "2.53": query_of(_SEARCH),
        "2.75": query_of(_SEARCH, strict=True),
    }
)
SHOW = Versioned({"2.1": NO_QUERY, "2.53": query_of(_SERVERS), "2.75": query_of(_SERVERS, strict=True)})
