"""Synthetic rows of three real mixed tables by `Autoregressive`, `Flow` and `VAE`, against CTGAN and a Gaussian copula.

Each table is split in half. Judged on the half that no model saw: the classifier test (½ is perfect), the score of
boosted trees taught by synthetic rows (beside those taught by real ones), and whether synthetic rows lie nearer to
training rows than to held-out ones (½ without copying). All models have their defaults; the same seed gives the same
rows. CTGAN is left out where it is not installed.
"""

from __future__ import annotations

import importlib.util
import time
import warnings
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy.stats import norm
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from likely import VAE, Autoregressive, Flow
from likely.evaluate import closest_record, two_sample

from .datasets import mixed_table
from .timing import Result, show

__all__ = ["CTGANRows", "GaussianCopula", "halves", "run"]

TARGETS = {"Benefits": "ui", "Computers": "price", "Kakadu": "answer"}
"""What trees are taught to predict. Defaults were chosen on other tables."""
OURS = (Autoregressive, Flow, VAE)


class Judged(NamedTuple):
    """How synthetic rows of one table did, and the seconds that the fit took."""

    test: float
    taught: float
    nearer: float
    seconds: float


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


class CTGANRows:
    """CTGAN with its defaults."""

    def fit(self, frame: pl.DataFrame) -> CTGANRows:
        from ctgan import CTGAN

        self.schema = frame.schema
        labels = [name for name, kind in frame.schema.items() if kind == pl.String]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.model = CTGAN(verbose=False, enable_gpu=False)
            self.model.set_random_state(0)
            self.model.fit(frame.to_pandas(), labels)
        return self

    def sample(self, n: int, random_state: int = 0) -> pl.DataFrame:
        self.model.set_random_state(random_state)
        drawn = self.model.sample(n)
        return pl.DataFrame({name: drawn[name].to_list() for name in self.schema}, schema=self.schema, strict=False)


def halves(name: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Rows to fit, and rows to judge by; a label that training has not shown has no probability."""
    frame = mixed_table(name)
    train, test = frame[: len(frame) // 2], frame[len(frame) // 2 :]
    for column, kind in frame.schema.items():
        test = test.filter(pl.col(column).is_in(train[column].unique().to_list())) if kind == pl.String else test
    return train, test


def run(repeats: int = 1) -> list[Result]:
    """A line for each of our models and each peer: means over the tables."""
    peers: dict[str, Any] = {"copula": GaussianCopula}
    if importlib.util.find_spec("ctgan") is None:
        print("CTGAN is left out: ctgan is not installed.", flush=True)
    else:
        peers["CTGAN"] = CTGANRows
    makers = {kind.__name__: lambda kind=kind: kind(random_state=0) for kind in OURS} | peers
    judged: dict[str, list[Judged]] = {name: [] for name in makers}
    real = []
    for table, target in TARGETS.items():
        train, test = halves(table)
        real.append(taught(train, test, target))
        for name, make in makers.items():
            judged[name].append(judge(make(), train, test, target))
            print(f"{table} {len(train)} × {train.width}, {name}: {judged[name][-1]}", flush=True)
    lines = []
    for kind in OURS:
        for peer in peers:
            lines += _compared(kind.__name__, peer, judged, float(np.mean(real)))
    return lines


def _compared(name: str, peer: str, judged: dict[str, list[Judged]], real: float) -> list[Result]:
    ours, theirs = (Judged(*np.mean(judged[own], 0).tolist()) for own in (name, peer))
    both = ", ".join(f"{a.test:.3f} against {b.test:.3f}" for a, b in zip(judged[name], judged[peer], strict=True))
    words = (
        f"tables {', '.join(TARGETS)}: {both}; taught by synthetic rows {ours.taught:.3f} against {theirs.taught:.3f}, "
        f"by real ones {real:.3f}; nearer to training rows {ours.nearer:.3f} against {theirs.nearer:.3f}"
    )
    better = ours.taught >= theirs.taught and ours.nearer - 0.5 <= max(0.02, theirs.nearer - 0.5)
    lines = [Result(f"{name}, rows", peer, ours.test - 0.5, theirs.test - 0.5, words, better, 1.0, "test − ½")]
    if peer == "CTGAN":
        fit = "seconds of all fits, defaults of both"
        lines.append(Result(f"{name}, fit", peer, ours.seconds, theirs.seconds, fit, True, 1 / 3))
    return lines


def judge(maker: Any, train: pl.DataFrame, test: pl.DataFrame, target: str) -> Judged:
    """Fit, draw as many rows as there are to compare with, and judge them."""
    began = time.perf_counter()
    maker.fit(train)
    seconds = time.perf_counter() - began
    new = maker.sample(len(test), random_state=1)
    return Judged(
        two_sample(test, new).accuracy, taught(new, test, target), closest_record(new, train, test).nearer, seconds
    )


def taught(teacher: pl.DataFrame, test: pl.DataFrame, target: str) -> float:
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


if __name__ == "__main__":
    show(run())
