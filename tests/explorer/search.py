# SPDX-License-Identifier: Apache-2.0
"""The search: every schedule of a case, depth first, each run again from the beginning up to its last choice."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.explorer.world import Case, Lab, World


class Violation(AssertionError):
    """A rule is broken; says which one, and by what schedule."""


@dataclass
class Report:
    """What a search has seen. story is empty if no rule was broken."""

    case: str
    states: int = 0
    steps: int = 0
    runs: int = 0
    ends: int = 0
    seconds: float = 0.0
    complete: bool = False
    broken: str = ""
    story: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        if not self.broken:
            return f"{self.case}: {self.states} states, {self.ends} ends, no rule broken"
        return "\n".join([f"{self.case}: {self.broken}", "", *self.story])


@dataclass
class _Choice:
    taken: int
    count: int


class Search:
    """Explores one case."""

    def __init__(self, lab: Lab, case: Case, change: Callable[[World], None] | None = None) -> None:
        self._lab = lab
        self._case = case
        self._change = change
        self._trail: list[_Choice] = []
        self._depth = 0
        self._visited: set[bytes] = set()
        self.report = Report(case.name)

    def explore(self, most_runs: int = 1_000_000) -> Report:
        """Try every schedule, or stop at the first that breaks a rule."""
        began = time.process_time()
        with self._lab.books_of(self._case):
            while self.report.runs < most_runs:
                self._run()
                self.report.runs += 1
                if self.report.broken:
                    self._run(telling=True)
                    break
                if not self._turn_back():
                    self.report.complete = True
                    break
        self.report.states = len(self._visited)
        self.report.seconds = time.process_time() - began
        return self.report

    def _turn_back(self) -> bool:
        """Take the next branch of the last choice that has one left; returns whether there was one."""
        while self._trail and self._trail[-1].taken + 1 == self._trail[-1].count:
            self._trail.pop()
        if not self._trail:
            return False
        self._trail[-1].taken += 1
        return True

    def _choose(self, count: int) -> int:
        """Return which of so many branches this run takes."""
        if count == 1:
            return 0
        if self._depth == len(self._trail):
            self._trail.append(_Choice(0, count))
        choice = self._trail[self._depth]
        if choice.count != count:
            raise AssertionError(f"the case is not deterministic: {choice.count} branches became {count}")
        self._depth += 1
        return choice.taken

    def _run(self, telling: bool = False) -> None:
        """Follow the trail to its end, and on from there as long as what comes is new.

        :param telling: only follow it, and keep the story.
        """
        self._depth, known = 0, len(self._trail)
        world = World(self._lab, self._case, self._choose, telling)
        try:
            if self._change:
                self._change(world)
            world.start()
            while options := world.options():
                if not telling and self._depth >= known and self._has_been_here(world):
                    return
                world.take(options[self._choose(len(options))])
                self.report.steps += not telling
                if self._depth >= known and self._judge(world, world.broken()):
                    return
            self.report.ends += not telling
            self._judge(world, world.broken_at_the_end())
        finally:
            world.abandon()

    def _has_been_here(self, world: World) -> bool:
        key = world.key()
        if key in self._visited:
            return True
        self._visited.add(key)
        return False

    def _judge(self, world: World, broken: str | None) -> bool:
        if broken:
            self.report.broken = broken
            self.report.story = world.story()
        return bool(broken)
