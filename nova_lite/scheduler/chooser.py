# SPDX-License-Identifier: Apache-2.0
"""The chooser: for a request, a host among the best that the view offers.

Naively, each request would be held against all hosts: with 10,000 of them that is a millisecond, most of it spent on
hosts that no request of the batch will get. But equal requests weigh equally, and one pick changes one host. So the
first request of a kind looks at all hosts, and leaves a shortlist of the best for its likes; they look at those alone,
with what has been booked on them since. A shortlist is made again when its best is no longer as good as what was left
out of it, or when it has been used up; it lasts for one round, since other schedulers change all hosts meanwhile.

Among hosts that weigh nearly the same each scheduler chooses by chance, so that schedulers do not march to the same
host in step; a shortlist of more equals than it has places takes some of them by chance too.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nova_lite.scheduler.filters import Filter
from nova_lite.scheduler.request import Request
from nova_lite.scheduler.view import Mask, View
from nova_lite.scheduler.weighers import Rows, Span, Weigher, Weights

# A batch is 64 requests by default: few of a kind use up more than a quarter of this.
SHORTLIST = 256
_PICKS = SHORTLIST // 4


@dataclass(slots=True)
class _Shortlist:
    """rows: the best of their kind. spans: each weigher's range over all hosts. floor: what makes a row good enough.

    is_complete: no other row can be had. picks_left: after so many, it is made again.
    """

    rows: Rows
    spans: Sequence[Span | None]
    floor: float
    is_complete: bool
    picks_left: int


class Chooser:
    """Chooses rows of a view. What is chosen has to be booked there before the next choice."""

    def __init__(
        self, view: View, filters: Sequence[Filter], weighers: Sequence[Weigher], near_equal: float, dice: random.Random
    ) -> None:
        self._view = view
        self._fixed = [each for each in filters if not each.depends_on_usage]
        self._moving = [each for each in filters if each.depends_on_usage]
        self._weighers = [each for each in weighers if each.factor]
        self._near_equal = near_equal
        self._dice = dice
        self._masks: dict[tuple[object, ...], Mask] = {}
        self._generation = -1
        self._shortlists: dict[tuple[object, ...], _Shortlist] = {}

    def look_again(self) -> None:
        """Forget the shortlists: hosts have changed by more than what was chosen."""
        self._shortlists.clear()

    def choose(self, request: Request) -> int | None:
        """Return a row for the request that it has not visited, or None."""
        kind = (request.traits(), request.group_id)
        shortlist = self._shortlists.get(kind)
        if shortlist is not None:
            row = self._from_shortlist(shortlist, request)
            if row is not None or shortlist.is_complete:
                return row
        rows = self._passing(request)
        if not len(rows):
            return None
        total = self._weigh(rows, request, [None] * len(self._weighers))
        near = rows if total is None else rows[total >= total.max() - self._near_equal]
        self._shortlists[kind] = self._shorten(rows, total, near, request)
        return self._any(near)

    def _any(self, rows: Rows) -> int:
        return int(rows[self._dice.randrange(len(rows))])

    def _from_shortlist(self, shortlist: _Shortlist, request: Request) -> int | None:
        if not shortlist.picks_left:
            return None
        shortlist.picks_left -= 1
        rows = shortlist.rows
        for each in self._moving:
            passing = each.passes_rows(self._view, rows, request)
            if passing is not None:
                rows = rows[passing]
        if request.visited:
            rows = rows[~np.isin(rows, self._visited(request))]
        if not len(rows):
            return None
        total = self._weigh(rows, request, shortlist.spans)
        if total is None:
            return self._any(rows)
        best = total.max()
        return self._any(rows[total >= best - self._near_equal]) if best >= shortlist.floor else None

    def _passing(self, request: Request) -> Rows:
        mask = self._fixed_mask(request)
        for each in self._moving:
            passing = each.passes(self._view, request)
            if passing is not None:
                mask = mask & passing
        if request.visited:
            mask = mask.copy()
            mask[self._visited(request)] = False
        return np.flatnonzero(mask)

    def _visited(self, request: Request) -> list[int]:
        return [self._view.index[node] for node in request.visited if node in self._view.index]

    def _fixed_mask(self, request: Request) -> Mask:
        """Return what the filters that do not depend on usage say, kept for equal requests."""
        if self._generation != self._view.generation or len(self._masks) > 1000:
            self._masks.clear()
            self._generation = self._view.generation
        traits = request.traits()
        mask = self._masks.get(traits)
        if mask is None:
            mask = np.ones(len(self._view), dtype=bool)
            for each in self._fixed:
                passing = each.passes(self._view, request)
                if passing is not None:
                    mask &= passing
            self._masks[traits] = mask
        return mask

    def _weigh(self, rows: Rows, request: Request, spans: Sequence[Span | None]) -> Weights | None:
        """Return what the rows weigh; None if they all weigh the same."""
        total = None
        for weigher, span in zip(self._weighers, spans, strict=True):
            weights = weigher.weigh(self._view, rows, request, span)
            if weights is not None:
                total = weights if total is None else total + weights
        return total

    def _shorten(self, rows: Rows, total: Weights | None, near: Rows, request: Request) -> _Shortlist:
        """Keep the best of all rows that pass."""
        if len(rows) <= SHORTLIST:
            spans: list[Span | None] = [None] * len(self._weighers)
            # Whom this request has visited may be good enough for the others.
            is_complete = not request.visited
            return _Shortlist(rows, spans, -np.inf, is_complete, len(rows) * SHORTLIST if is_complete else _PICKS)
        spans = [weigher.span(self._view, rows, request) for weigher in self._weighers]
        if len(near) >= SHORTLIST or total is None:
            best = near[self._dice.sample(range(len(near)), SHORTLIST)]
            floor = -np.inf if total is None else float(total.max()) - self._near_equal
        else:
            order = np.argpartition(-total, SHORTLIST)
            best = rows[order[:SHORTLIST]]
            floor = float(total[order[SHORTLIST]]) - self._near_equal
        return _Shortlist(best, spans, floor, False, _PICKS)
