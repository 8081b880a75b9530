# SPDX-License-Identifier: Apache-2.0
"""No schedule of any case breaks a rule."""

from __future__ import annotations

import pytest

from tests.explorer.cases import CASES
from tests.explorer.search import Search
from tests.explorer.world import Case, Lab


def _parameter(case: Case) -> object:
    return pytest.param(case, id=case.name, marks=[] if case.daily else [pytest.mark.long])


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("case", [_parameter(case) for case in CASES])
def test_no_schedule_breaks_a_rule(lab: Lab, case: Case) -> None:
    report = Search(lab, case).explore()
    assert not report.broken, report
    assert report.complete
    assert report.ends > 1
