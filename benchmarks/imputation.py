"""Gaps of three real mixed tables filled by `Autoregressive`, against scikit-learn's `IterativeImputer`.

20 % of the values of held-out rows are hidden at random. Errors are the mean over columns of RMSE / standard deviation
for numbers and of the error rate for labels; the log score is that of whole held-out rows.
"""

from __future__ import annotations

import warnings

import numpy as np
import polars as pl
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer

from likely import Autoregressive

from .synthetic_tables import TARGETS, halves
from .timing import Result, show

__all__ = ["run"]

MISSING = 0.2
ROWS = 1_000
"""Held-out rows, at most."""


def run(repeats: int = 1) -> list[Result]:
    """Three tables."""
    return [imputed(name) for name in TARGETS]


def imputed(name: str) -> Result:
    """Both see the same gaps; IterativeImputer sees labels as one-hot columns, of which the largest wins."""
    train, test = halves(name)
    test = test[:ROWS]
    rng = np.random.default_rng(0)
    gone = {column: rng.random(len(test)) < MISSING for column in test.columns}
    holes = test.with_columns(
        pl.when(pl.Series(gone[c])).then(None).otherwise(pl.col(c)).alias(c) for c in test.columns
    )
    model = Autoregressive(random_state=0).fit(train)
    ours, theirs = (errors(filled, test, gone) for filled in (model.impute(holes), iterative(train, holes)))
    words = (
        f"{MISSING:.0%} of {len(test)} rows: RMSE / deviation {ours[0]:.3f} against {theirs[0]:.3f}, labels wrong "
        f"{ours[1]:.3f} against {theirs[1]:.3f}; log p {model.score(test):.2f} per row"
    )
    better = ours[0] <= theirs[0] and ours[1] <= theirs[1]
    return Result(f"imputation, {name}", "IterativeImputer", ours[2], theirs[2], words, better, 1.0, "error")


def iterative(train: pl.DataFrame, holes: pl.DataFrame) -> pl.DataFrame:
    """The peer, with its defaults."""
    levels = {c: sorted(train[c].unique().to_list()) for c, kind in train.schema.items() if kind == pl.String}

    def wide(frame: pl.DataFrame) -> np.ndarray:
        blocks = []
        for column in frame.columns:
            if column in levels:
                values = frame[column].to_list()
                hot = [[np.nan if v is None else float(v == level) for level in levels[column]] for v in values]
                blocks.append(np.array(hot))
            else:
                blocks.append(frame[column].cast(pl.Float64).to_numpy().reshape(-1, 1))
        return np.column_stack(blocks)

    x = wide(train)
    unit = np.where(x.std(0) > 0, x.std(0), 1.0)
    imputer = IterativeImputer(random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # its ten rounds
        filled = imputer.fit(x / unit).transform(wide(holes) / unit) * unit
    out, place = {}, 0
    for column in holes.columns:
        size = len(levels.get(column, [0]))
        own = filled[:, place : place + size]
        out[column] = [levels[column][i] for i in own.argmax(1)] if column in levels else own[:, 0]
        place += size
    return pl.DataFrame(out)


def errors(filled: pl.DataFrame, truth: pl.DataFrame, gone: dict[str, np.ndarray]) -> tuple[float, float, float]:
    """Of numbers, of labels, and of all columns."""
    numbers, labels = [], []
    for column, kind in truth.schema.items():
        new, old = (frame[column].to_numpy()[gone[column]] for frame in (filled, truth))
        if kind == pl.String:
            labels.append(np.mean(new != old))
        else:
            numbers.append(np.sqrt(np.mean((new.astype(float) - old) ** 2)) / (truth[column].to_numpy().std() or 1.0))
    return float(np.mean(numbers)), float(np.mean(labels)), float(np.mean(numbers + labels))


if __name__ == "__main__":
    show(run())
