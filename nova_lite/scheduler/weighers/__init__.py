# SPDX-License-Identifier: Apache-2.0
"""What a weigher is. Each weigher has a module of its own here and an entry point in nova_lite.weighers."""

from __future__ import annotations

import abc
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from oslo_config import cfg

from nova_lite.scheduler.request import Request
from nova_lite.scheduler.view import Rows, View

__all__ = ["Rows", "Span", "Weigher", "Weights"]

Weights = NDArray[np.float64]
#: The least and the greatest raw weight.
Span = tuple[float, float]


class Weigher(abc.ABC):
    """One preference. Its raw weights are scaled to 0..1 over the candidates and multiplied.

    multiplier names the option; packs tells whether placement_policy = pack turns its sign.
    """

    multiplier: ClassVar[str]
    packs: ClassVar[bool] = False

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        sign = -1.0 if self.packs and conf.scheduler.placement_policy == "pack" else 1.0
        self.factor = sign * float(conf.scheduler[self.multiplier])

    @abc.abstractmethod
    def raw(self, view: View, rows: Rows, request: Request) -> Weights | None:
        """Return a weight for each of the rows, more is better; None if the weigher has no opinion."""

    def weigh(self, view: View, rows: Rows, request: Request, span: Span | None = None) -> Weights | None:
        """Return the scaled and multiplied weights; None if they are all the same.

        :param span: what the rows are scaled to, if they are a part of the candidates.
        """
        if not self.factor:
            return None
        raw = self.raw(view, rows, request)
        if raw is None:
            return None
        low, high = raw.min(), raw.max()
        if span is not None:
            low, high = min(low, span[0]), max(high, span[1])
        if low == high:
            return None
        return (raw - low) * (self.factor / (high - low))

    def span(self, view: View, rows: Rows, request: Request) -> Span | None:
        """Return the range of the rows' raw weights."""
        raw = self.raw(view, rows, request)
        return None if raw is None else (float(raw.min()), float(raw.max()))
