# SPDX-License-Identifier: Apache-2.0
"""Four members of an anti-affinity group are booted at once on three hosts; three should be ACTIVE, and two were.

The late check at the hosts found two members on one host and turned both away, and their retries left out hosts that
had become free. Here the order of the grants decides: of two on a host exactly one loses, before anything is built, and
goes where there is a place. A hundred rounds of it are in tests/functional/test_races.py.
"""

from __future__ import annotations

from tests.fixtures import races
from tests.fixtures.cloud import Cloud


def test_four_members_on_three_hosts(three_hosts: Cloud) -> None:
    races.anti_affinity_rounds(three_hosts, rounds=5, count=4, places=3)
