# SPDX-License-Identifier: Apache-2.0
"""A checker that cannot fail is no checker: each mistake is made, and the explorer must tell its story."""

from __future__ import annotations

import pytest

from tests.explorer.mistakes import MISTAKES, Mistake
from tests.explorer.search import Search
from tests.explorer.world import Lab


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_the_mistake_is_caught(lab: Lab, mistake: Mistake) -> None:
    with mistake.made():
        report = Search(lab, mistake.case, mistake.change).explore()
    assert mistake.expected in report.broken
    print(report)
    assert report.story[0].startswith("At first")
    assert len(report.story) > 3
