# SPDX-License-Identifier: Apache-2.0
"""What a filter is. Each filter has a module of its own here and an entry point in nova_lite.filters."""

from __future__ import annotations

import abc
from typing import ClassVar

from oslo_config import cfg

from nova_lite.scheduler.request import Request
from nova_lite.scheduler.view import Mask, Rows, View


class Filter(abc.ABC):
    """One reason to turn hosts away.

    depends_on_usage tells whether the answer changes with what is booked; if not, it is kept until the view's
    generation changes.
    """

    depends_on_usage: ClassVar[bool] = False

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf

    @abc.abstractmethod
    def passes(self, view: View, request: Request) -> Mask | None:
        """Return for each row whether the host passes, None if all do."""

    def passes_rows(self, view: View, rows: Rows, request: Request) -> Mask | None:
        """Return the same for some rows alone; a filter that depends on usage is asked this for each request."""
        passing = self.passes(view, request)
        return None if passing is None else passing[rows]

    @abc.abstractmethod
    def explain(self, request: Request) -> str:
        """Return why a host was turned away, to be read after "N hosts"."""
