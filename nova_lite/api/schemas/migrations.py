# SPDX-License-Identifier: Apache-2.0
"""What requests for migrations may look like, at each microversion."""

from __future__ import annotations

from nova_lite.api import validation as v
from nova_lite.api.microversion import Versioned
from nova_lite.api.validation import Schema

_TIME = v.single({"type": "string", "format": "date-time", "maxLength": 64})
_LIST: Schema = dict.fromkeys(
    ("hidden", "host", "instance_uuid", "source_compute", "status", "migration_type"), v.multi(v.QUERY_STRING)
)
_LIST_259: Schema = {
    **_LIST,
    "limit": v.single(v.QUERY_INTEGER),
    "marker": v.single({"type": "string", "maxLength": 255}),
    "changes-since": _TIME,
}
_LIST_266: Schema = {**_LIST_259, "changes-before": _TIME}
_LIST_280: Schema = {**_LIST_266, "user_id": v.single(v.QUERY_STRING), "project_id": v.single(v.QUERY_STRING)}

LIST = Versioned(
    {
        "2.1": v.query_of(_LIST),
        "2.59": v.query_of(_LIST_259, strict=True),
        "2.66": v.query_of(_LIST_266, strict=True),
        "2.80": v.query_of(_LIST_280, strict=True),
    }
)

FORCE_COMPLETE = v.obj({"force_complete": {"type": "null"}}, ("force_complete",))
