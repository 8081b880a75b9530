# SPDX-License-Identifier: Apache-2.0
"""What is expected of Tempest, and how its results are sorted."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from tests.tempest import command, rungs
from tests.tempest.rungs import Rung
from tests.tempest.stock import Result

RUNG = Rung("1-x", "about", ("api.A.test_one", "api.A.test_two", "api.B.test_three"))


def _account(*results: Result, known: dict[str, str] | None = None) -> rungs.Account:
    return rungs.account(RUNG, results, known or {})


def test_every_test_is_on_one_rung_and_every_known_failure_on_some() -> None:
    listed = Counter(test for rung in rungs.load() for test in rung.tests)

    assert len(listed) == 463
    assert [test for test, count in listed.items() if count > 1] == []
    assert all(re.fullmatch(r"tempest(\.\w+)+", test) for test in listed)
    for hypervisor in ("fake", "qemu"):
        known = rungs.known_failures(hypervisor)
        assert known.keys() <= listed.keys()
        assert all(reason.strip() for reason in known.values())


def test_what_passed_and_what_did_not() -> None:
    found = _account(
        Result("api.A.test_one", "success", 1.0, ""),
        Result("api.A.test_two", "fail", 1.0, "Traceback\nDetails: 500"),
        Result("api.B.test_three", "skip", 0.0, "no network"),
    )

    assert found.passed == ["api.A.test_one"]
    assert found.regressions == {
        "api.A.test_two": "fail: Traceback\nDetails: 500",
        "api.B.test_three": "skip: no network",
    }


def test_a_test_of_which_nothing_is_heard_has_not_passed() -> None:
    found = _account(Result("api.A.test_one", "success", 1.0, ""))

    assert set(found.regressions) == {"api.A.test_two", "api.B.test_three"}
    assert all(words.startswith("not run") for words in found.regressions.values())


def test_a_class_that_cannot_be_set_up_fails_all_its_tests() -> None:
    found = _account(
        Result("setUpClass (api.A)", "fail", 1.0, "no login"), Result("api.B.test_three", "success", 1.0, "")
    )

    assert found.regressions == {"api.A.test_one": "fail: no login", "api.A.test_two": "fail: no login"}


def test_a_known_failure_is_told_with_its_reason_until_it_passes() -> None:
    known = {"api.A.test_one": "no such thing here", "api.A.test_two": "neither"}
    found = _account(
        Result("api.A.test_one", "fail", 1.0, ""),
        Result("api.A.test_two", "success", 1.0, ""),
        Result("api.B.test_three", "success", 1.0, ""),
        known=known,
    )

    assert (found.known, found.mended, found.passed) == (
        {"api.A.test_one": "no such thing here"},
        ["api.A.test_two"],
        ["api.B.test_three"],
    )
    assert found.regressions == {}


def test_rungs_are_chosen_by_what_their_names_begin_with() -> None:
    every = rungs.load()

    assert command._choose(every, None) == every
    assert [rung.name for rung in command._choose(every, ["4b", "1"])] == ["4b-images-proxy", "1-catalogue"]
    for name in ("4", "9"):
        with pytest.raises(ValueError, match="1-catalogue"):
            command._choose(every, [name])
