# SPDX-License-Identifier: Apache-2.0
"""What requests for a server's tags may look like."""

from __future__ import annotations

from nova_lite.api import validation as v
from nova_lite.api.schemas.servers import TAG, TAG_LIST

TAGS = v.obj({"tags": TAG_LIST}, ("tags",))
#: A tag that stands in the path.
ONE = v.obj({"tag": TAG}, ("tag",))
