"""A leaderboard: several models on the same folds, by cross-validated log score, with paired differences to the best.

difference = mean (scoreᵢ − scoreᵢ of the best),   with the standard error of that mean over rows: rows that are hard
             for all models cancel, so differences are known far better than scores
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_classifier

from ..core.errors import DataError
from .protocol import has
from .result import Result, plus_minus
from .scores import log_scores
from .validation import (
    CrossValidation,
    RowScore,
    folds_of,
    mean_and_error,
    run,
)

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["Entry", "Leaderboard", "compare"]

NUMBER = re.compile(r"\d[\d.,]*(e[+-]?\d+)?")
"""Numbers in messages."""


@dataclass(frozen=True)
class Entry(Result):
    """One model: its score, the difference to the best, seconds per fit, other metrics; or the error it raised."""

    name: str
    score: float = math.nan
    standard_error: float = math.nan
    difference: float = math.nan
    difference_error: float = math.nan
    seconds: float = math.nan
    metrics: dict[str, float] = field(default_factory=dict)
    error: str | None = None
    scored: bool = True
    """False for a model without probabilities: only its metrics can be compared."""


@dataclass(frozen=True)
class Leaderboard(Result):
    """Entries from best to worst; then models without probabilities, then those that failed. Prints as a table."""

    entries: tuple[Entry, ...]

    @property
    def best(self) -> str:
        """The name of the model with the highest score."""
        if self.entries[0].error is not None:
            raise DataError(f"every model failed; the first with {self.entries[0].error}")
        return self.entries[0].name

    def __getitem__(self, name: str) -> Entry:
        for entry in self.entries:
            if entry.name == name:
                return entry
        raise KeyError(f"{name!r}; the leaderboard has {', '.join(entry.name for entry in self.entries)}")

    def __str__(self) -> str:
        header, *rows = self._cells()
        widths = [max(len(line[i]) for line in [header, *rows] if i < len(line)) for i in range(len(header))]
        failures = {entry.name: entry.error for entry in self.entries if entry.error is not None}
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(header, widths, strict=True)).rstrip()]
        for row in rows:
            if row[0] in failures:
                lines.append(f"{row[0].ljust(widths[0])}  failed: {failures[row[0]]}")
            else:
                lines.append("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        return "\n".join(lines)

    def __rich__(self) -> Table:
        from rich.table import Table
        from rich.text import Text

        header, *rows = self._cells()
        table = Table(*header, box=None, header_style="bold", pad_edge=False)
        for row, entry in zip(rows, self.entries, strict=True):
            cells = [Text(cell) for cell in row]
            if entry.error is not None:
                cells[1] = Text(f"failed: {entry.error}", style="red")
            table.add_row(*cells, style="bold" if entry is self.entries[0] and entry.error is None else None)
        return table

    def _cells(self) -> list[list[str]]:
        """The header and the rows as text; a failed model has empty cells."""
        names = list(dict.fromkeys(name for entry in self.entries for name in entry.metrics))
        table = [["model", "score", "to the best", *names, "s / fit"]]
        for entry in self.entries:
            if entry.error is not None:
                table.append([entry.name, *[""] * (len(names) + 3)])
                continue
            behind = plus_minus(entry.difference, entry.difference_error) if entry is not self.entries[0] else "best"
            behind = behind if entry.scored else "no probabilities"
            numbers = [f"{entry.metrics[name]:.4g}" if name in entry.metrics else "" for name in names]
            score = plus_minus(entry.score, entry.standard_error) if entry.scored else "—"
            table.append([entry.name, score, behind, *numbers, f"{entry.seconds:.3g}"])
        return table


def compare(
    models: Mapping[str, Any],
    X: Any,
    y: Any,
    *,
    cv: Any = 5,
    score: RowScore = log_scores,
    metrics: Mapping[str, Callable[[Any, Any], float]] | None = None,
    random_state: Any = None,
) -> Leaderboard:
    """Cross-validate every model on the same folds. One that fails is reported in its place, and the others go on.

    Arguments are those of `cross_validate`. A difference of less than two standard errors is not evidence. A model that
    gives no probabilities, such as a boosted regression, has no log score: it stands in the table by its metrics alone.
    What the fits of a model warn of is told once, with its name and the number of fits.

    >>> from sklearn.dummy import DummyClassifier
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = np.linspace(-2, 2, 60).reshape(-1, 1)
    >>> y = (X[:, 0] > 0).astype(int)
    >>> board = compare({"coin": DummyClassifier(), "logistic": LogisticRegression()}, X, y, random_state=0)
    >>> board.best
    'logistic'
    >>> board["coin"].difference < -2 * board["coin"].difference_error
    True
    """
    if not models:
        raise DataError("models is empty; give a dict from names to estimators.")
    classifiers = all(is_classifier(model) for model in models.values())
    folds = folds_of(cv, X, y, classifier=classifiers, random_state=random_state)
    runs: dict[str, CrossValidation] = {}
    failures: list[Entry] = []
    unscored: list[Entry] = []
    for name, model in models.items():
        scored = not metrics or _answers(model)
        try:
            with warnings.catch_warnings(record=True) as heard:
                own = run(model, X, y, folds, score if scored else _no_score, metrics or {})
        except Exception as error:  # whatever a model throws, the others still count
            failures.append(Entry(name, error=f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"))
            continue
        finally:
            for text, category in _told_once(heard, name, len(folds)):
                warnings.warn(text, category, stacklevel=2)
        if scored:
            runs[name] = own
        else:
            unscored.append(Entry(name, seconds=own.seconds, metrics=own.metrics, scored=False))
    ranked = sorted(runs, key=lambda name: _rank(runs[name]))
    return Leaderboard((*(_entry(name, runs[name], runs[ranked[0]]) for name in ranked), *unscored, *failures))


def _told_once(heard: Sequence[warnings.WarningMessage], name: str, folds: int) -> Iterator[tuple[str, type[Warning]]]:
    """Warnings of the fits of one model, with its name; those that differ in numbers alone are one.

    >>> heard = [warnings.WarningMessage(UserWarning(f"gap {size}"), UserWarning, "", 0) for size in (0.5, 0.25)]
    >>> [text for text, _ in _told_once(heard, "logistic", 5)]
    ['logistic: gap 0.5 (2 warnings of this kind from 5 fits)']
    """
    kinds: dict[tuple[type[Warning], str], list[str]] = {}
    for warning in heard:
        text = str(warning.message)
        kinds.setdefault((warning.category, NUMBER.sub("", text)), []).append(text)
    for (category, _), (text, *others) in kinds.items():
        more = f" ({len(others) + 1} warnings of this kind from {folds} fits)" if others else ""
        yield f"{name}: {text}{more}", category


def _answers(model: Any) -> bool:
    """Whether a model says how probable a target is; searches and pipelines are opened."""
    while hasattr(model, "estimator") or hasattr(model, "steps"):
        model = model.steps[-1][1] if hasattr(model, "steps") else model.estimator
    predictor = hasattr(model, "predict")
    return not predictor or has(model, "log_prob") or has(model, "predict_proba")


def _no_score(model: Any, X: Any, y: Any) -> np.ndarray:
    return np.zeros(len(y))


def _rank(own: CrossValidation) -> tuple[float, int, float]:
    """Best first; of models that score −∞, the one that can score more rows, then the one that scores those better."""
    possible = own.rows[np.isfinite(own.rows)]
    return -own.score, -len(possible), -float(possible.mean()) if len(possible) else 0.0


def _entry(name: str, own: CrossValidation, best: CrossValidation) -> Entry:
    with np.errstate(invalid="ignore"):  # −∞ − (−∞) where neither model can score a row
        difference, error = (0.0, 0.0) if own is best else mean_and_error(own.rows - best.rows)
    return Entry(name, own.score, own.standard_error, difference, error, own.seconds, own.metrics)
