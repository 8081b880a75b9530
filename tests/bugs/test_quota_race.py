# SPDX-License-Identifier: Apache-2.0
"""Launchpad 1716706: requests that arrive together exceed the quota.

Nova counts what a project has, compares with the limit, writes, and counts again; of requests that interleave either
several pass the first count, or all fail the second and leave servers in ERROR behind. Here whoever wants quota locks
the project's row of use, so that exactly as many are accepted as fit, and the others leave nothing.
"""

from __future__ import annotations

import threading
from pathlib import Path

from nova_lite.db import models
from tests.fixtures.server_api import ServerAPI, create_body, write_users


def test_twenty_at_once_with_a_quota_of_ten(tmp_path: Path) -> None:
    write_users(tmp_path)
    api = ServerAPI(tmp_path, tmp_path, quota__instances=10, quota__cores=-1, quota__ram=-1)
    start = threading.Barrier(20)
    statuses: list[int] = []

    def create() -> None:
        start.wait()
        statuses.append(api.call("POST", "/servers", create_body()).status_code)

    threads = [threading.Thread(target=create) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(statuses) == [202] * 10 + [403] * 10
    assert api.count(models.instances) == api.count(models.operations) == len(api.conductor.hints) == 10
    api.close()
