# SPDX-License-Identifier: Apache-2.0
"""Files that a user puts into a server when it is created or rebuilt (up to 2.56; user data took their place).

They go to the guest on its config drive, which such a server always has; cloud-init writes them to their paths.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from nova_lite.db import quotas

Files = tuple[tuple[str, str], ...]


def files(body: Mapping[str, Any], limits: Mapping[str, int]) -> Files:
    """Return the files that a body asks for: path and content, the latter in base64 without spaces.

    :param limits: the project's, by resource.
    :raises QuotaExceeded: they are too many, or one has too long a path or too much content.
    """
    found = tuple((one["path"], "".join(one["contents"].split())) for one in body.get("personality", ()))
    quotas.check_count("injected_files", 0, limits["injected_files"], len(found))
    for path, content in found:
        size = len(base64.b64decode(content))
        quotas.check_count("injected_file_path_length", 0, limits["injected_file_path_length"], len(path))
        quotas.check_count("injected_file_content_bytes", 0, limits["injected_file_content_bytes"], size)
    return found
