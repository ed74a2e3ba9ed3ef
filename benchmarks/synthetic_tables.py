"""Synthetic rows of three real mixed tables by `Autoregressive`, against a Gaussian copula; and their gaps filled.

Each table is split in half. Judged on the half that no model saw: the classifier test (½ is perfect), the score of
boosted trees taught by synthetic rows (beside those taught by real ones), and whether synthetic rows lie nearer to
training rows than to held-out ones (½ without copying). Imputation hides 20 % of the values of the second half at
random; errors are the mean over columns of RMSE / standard deviation for numbers and of the error rate for labels.
"""

from __future__ import annotations

import errno
import time
from typing import Any

import numpy as np
import polars as pl
from scipy.stats import norm
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer

from likely import Autoregressive
from likely.evaluate import closest_record, two_sample

from .datasets import FOLDER
from .timing import Result, show

__all__ = ["GaussianCopula", "read_table", "run"]

TARGETS = {"abalone": "rings", "german_credit": "risk", "adult": "income"}
MOST = 8_000
"""Rows of a table, at most."""
MISSING = 0.2


def read_table(name: str) -> pl.DataFrame:
    """A table without its incomplete rows; codes of labels are text."""
    path = FOLDER / f"{name}.csv.gz"
    if not path.exists():
        raise FileNotFoundError(errno.ENOENT, "no such table", str(path))
    frame = pl.read_csv(path).drop_nulls()
    frame = frame.with_columns(pl.col("risk").cast(pl.String)) if "risk" in frame.columns else frame
    return frame.sample(min(MOST, len(frame)), seed=0, shuffle=True)


class GaussianCopula:
    """Columns as normal scores of their ranks (labels in order of frequency, jittered), with their correlations."""

    def fit(self, frame: pl.DataFrame) -> GaussianCopula:
        rng = np.random.default_rng(0)
        self.schema, self.columns, scores = frame.schema, [], []
        for name, kind in frame.schema.items():
            values = frame[name].to_numpy()
            if kind == pl.String:
                levels, counts = np.unique(values, return_counts=True)
                levels = levels[np.argsort(-counts)]
                values = np.array([list(levels).index(value) for value in values], dtype=float)
                self.columns.append((levels, np.sort(values)))
            else:
                self.columns.append((None, np.sort(values.astype(float))))
            order = np.lexsort([rng.random(len(values)), values])
            rank = np.empty(len(values))
            rank[order] = np.arange(len(values))
            scores.append(norm.ppf((rank + 0.5) / len(values)))
        self.covariance = np.corrcoef(scores)
        return self

    def sample(self, n: int, random_state: int = 0) -> pl.DataFrame:
        rng = np.random.default_rng(random_state)
        uniform = norm.cdf(rng.multivariate_normal(np.zeros(len(self.columns)), self.covariance, n))
        out = {}
        for (name, kind), (levels, values), u in zip(self.schema.items(), self.columns, uniform.T, strict=True):
            drawn = values[np.minimum((u * len(values)).astype(int), len(values) - 1)]
            out[name] = (
                levels[drawn.astype(int)] if levels is not None else drawn.astype(int if kind.is_integer() else float)
            )
        return pl.DataFrame(out, schema=self.schema)


def run(repeats: int = 1) -> list[Result]:
    """Three tables, each by its own lines."""
    results = []
    for name, target in TARGETS.items():
        frame = read_table(name)
        train, test = frame[: len(frame) // 2], frame[len(frame) // 2 :]
        for column, kind in frame.schema.items():  # a label that training has not shown has no probability
            test = test.filter(pl.col(column).is_in(train[column].unique().to_list())) if kind == pl.String else test
        began = time.process_time()
        model = Autoregressive(random_state=0).fit(train)
        seconds = time.process_time() - began
        ours, theirs = (_judged(maker, train, test, target) for maker in (model, GaussianCopula().fit(train)))
        real = _taught(train, test, target)
        words = (
            f"classifier test {ours[0]:.3f} against {theirs[0]:.3f}; taught by synthetic rows {ours[1]:.3f} against "
            f"{theirs[1]:.3f}, by real ones {real:.3f}; nearer to training {ours[2]:.3f} against {theirs[2]:.3f}; "
            f"log p {model.score(test):.2f}; fit {seconds:.0f} s"
        )
        gains = ours[0] - 0.5, theirs[0] - 0.5
        better = ours[1] >= theirs[1]
        results.append(Result(f"synthetic rows, {name}", "copula", *gains, words, better, 1.0, "test − ½"))
        results.append(_imputed(model, train, test, name))
    return results


def _judged(maker: Any, train: pl.DataFrame, test: pl.DataFrame, target: str) -> tuple[float, float, float]:
    new = maker.sample(len(test), random_state=1)
    return two_sample(test, new).accuracy, _taught(new, test, target), closest_record(new, train, test).nearer


def _taught(teacher: pl.DataFrame, test: pl.DataFrame, target: str) -> float:
    """Accuracy or R² of boosted trees on real rows that they have not seen."""
    both = pl.concat([teacher, test], how="vertical_relaxed")
    x = np.column_stack([_codes(both[name]) for name in both.columns if name != target])
    y, count = both[target].to_numpy(), len(teacher)
    labels = both.schema[target] == pl.String
    judge = (HistGradientBoostingClassifier if labels else HistGradientBoostingRegressor)(random_state=0)
    return float(judge.fit(x[:count], y[:count]).score(x[count:], y[count:]))


def _codes(column: pl.Series) -> np.ndarray:
    if column.dtype != pl.String:
        return column.to_numpy().astype(float)
    levels = {level: code for code, level in enumerate(sorted(column.unique().to_list()))}
    return np.array([levels[value] for value in column.to_list()], dtype=float)


def _imputed(model: Autoregressive, train: pl.DataFrame, test: pl.DataFrame, name: str) -> Result:
    """Both see the same gaps; IterativeImputer sees labels as one-hot columns, of which the largest wins."""
    test = test[:1000]
    rng = np.random.default_rng(0)
    gone = {column: rng.random(len(test)) < MISSING for column in test.columns}
    holes = test.with_columns(
        pl.when(pl.Series(gone[c])).then(None).otherwise(pl.col(c)).alias(c) for c in test.columns
    )
    ours = _error(model.impute(holes), test, gone)
    theirs = _error(_iterative(train, holes), test, gone)
    words = f"{MISSING:.0%} of {len(test)} rows: error {ours:.3f} against {theirs:.3f}"
    return Result(f"imputation, {name}", "IterativeImputer", ours, theirs, words, True, 1.0, "error")


def _iterative(train: pl.DataFrame, holes: pl.DataFrame) -> pl.DataFrame:
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
    imputer = IterativeImputer(random_state=0, max_iter=5, n_nearest_features=30).fit((x / unit)[:2000])
    filled = imputer.transform(wide(holes) / unit) * unit
    out, place = {}, 0
    for column in holes.columns:
        size = len(levels.get(column, [0]))
        own = filled[:, place : place + size]
        out[column] = [levels[column][i] for i in own.argmax(1)] if column in levels else own[:, 0]
        place += size
    return pl.DataFrame(out)


def _error(filled: pl.DataFrame, truth: pl.DataFrame, gone: dict[str, np.ndarray]) -> float:
    errors = []
    for column, kind in truth.schema.items():
        new, old = (frame[column].to_numpy()[gone[column]] for frame in (filled, truth))
        if kind == pl.String:
            errors.append(np.mean(new != old))
        else:
            errors.append(np.sqrt(np.mean((new.astype(float) - old) ** 2)) / (truth[column].to_numpy().std() or 1.0))
    return float(np.mean(errors))


if __name__ == "__main__":
    show(run())
