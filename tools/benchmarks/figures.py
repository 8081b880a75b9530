# SPDX-License-Identifier: Apache-2.0
"""What a benchmark has found: named figures with units and targets, as a table, as JSON and as a plot."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Figure:
    """One number. at_least and at_most are its targets, if it has any."""

    name: str
    value: float
    unit: str = ""
    at_least: float | None = None
    at_most: float | None = None

    @property
    def is_reached(self) -> bool | None:
        """Whether the targets are met; None without any."""
        if self.at_least is None and self.at_most is None:
            return None
        return (self.at_least is None or self.value >= self.at_least) and (
            self.at_most is None or self.value <= self.at_most
        )

    @property
    def target(self) -> str:
        parts = [f">= {self.at_least:g}"] if self.at_least is not None else []
        parts += [f"<= {self.at_most:g}"] if self.at_most is not None else []
        return ", ".join(parts)


@dataclass(frozen=True)
class Result:
    """One run with its settings. curve holds (seconds, count) points for the plot."""

    benchmark: str
    settings: dict[str, Any]
    figures: list[Figure]
    curve: list[tuple[float, float]] = field(default_factory=list)

    @property
    def title(self) -> str:
        return f"{self.benchmark}: " + " ".join(f"{name}={value}" for name, value in self.settings.items())


def percentile(values: Iterable[float], percent: float) -> float:
    """Return the smallest value that at least so many percent of the values do not exceed; nan for none."""
    ordered = sorted(values)
    if not ordered:
        return math.nan
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def median(results: Sequence[Result]) -> Result:
    """Make of several runs with the same settings one whose figures are the medians of theirs."""
    first = results[0]
    figures = []
    for place, figure in enumerate(first.figures):
        value = statistics.median(result.figures[place].value for result in results)
        figures.append(Figure(figure.name, value, figure.unit, figure.at_least, figure.at_most))
    settings = {**first.settings, "runs": len(results)}
    return Result(first.benchmark, settings, figures, first.curve)


def table(result: Result) -> str:
    """Write a result for people."""
    lines = [result.title]
    width = max(len(figure.name) for figure in result.figures)
    for figure in result.figures:
        verdict = {None: "", True: "reached", False: "NOT REACHED"}[figure.is_reached]
        target = f"(target {figure.target}) {verdict}" if figure.target else ""
        lines.append(f"  {figure.name:<{width}} {_number(figure.value):>12} {figure.unit:<6} {target}".rstrip())
    return "\n".join(lines)


def _number(value: float) -> str:
    if value == int(value) if math.isfinite(value) else False:
        return f"{int(value):,}"
    return f"{value:,.1f}" if abs(value) >= 100 else f"{value:.3g}"


def write_json(path: Path, machine: dict[str, Any], results: Sequence[Result]) -> None:
    """Write everything for programs."""
    path.write_text(json.dumps({"machine": machine, "results": [asdict(r) for r in results]}, indent=1) + "\n")


def plot(path: Path, results: Sequence[Result]) -> None:
    """Draw the curves of the results, or where there are none the first figure of each as bars.

    :raises ImportError: matplotlib is not installed.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    drawing, axes = pyplot.subplots(figsize=(9, 5))
    curves = [result for result in results if result.curve]
    for result in curves:
        axes.plot([x for x, _y in result.curve], [y for _x, y in result.curve], label=result.title)
    if curves:
        axes.set_xlabel("seconds")
        axes.set_ylabel("done")
        axes.legend(fontsize=7)
    else:
        _bars(axes, results)
    axes.grid(alpha=0.3)
    drawing.tight_layout()
    drawing.savefig(path)


def _bars(axes: Any, results: Sequence[Result]) -> None:
    titles = [result.title.replace(" ", "\n", 2) for result in results]
    axes.bar(range(len(results)), [result.figures[0].value for result in results])
    axes.set_xticks(range(len(results)), titles, fontsize=7)
    axes.set_ylabel(f"{results[0].figures[0].name} [{results[0].figures[0].unit}]")
