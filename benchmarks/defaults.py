"""Networks at their defaults on real tables with raw columns, beside scikit-learn's and our own linear model.

Each table is cut into folds; every method learns from the others at its defaults, and the rows of a fold are scored by
the log-probability of their targets (nats per row) and by squared error, or by wrong answers. A difference on a table
has the standard error of the mean of the rows' own differences.

scikit-learn's regressors give no probabilities. Theirs are normal around the answer, with the σ of rows that were not
trained on: those out of the bag of a forest; for others a fifth of the rows, which a second, untimed fit leaves out.
`python -m benchmarks defaults --repeats 3` takes three folds. Times are CPU seconds, the median over folds.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .tables import DEVELOPMENT, HELD_OUT, Source, Table
from .timing import Result

__all__ = ["METHODS", "Scores", "panel", "run"]

MANY = 10_000
"""Rows from which on two folds are enough to tell methods apart."""

DIVERGED = 1e30
"""The squared error of an answer that is not a number."""


class Scores(NamedTuple):
    """Of each held-out row: its log-probability, its loss (squared error, or 1 where wrong); and seconds to learn."""

    log: np.ndarray
    loss: np.ndarray
    seconds: float


def ours(linear: bool, **options: Any) -> Callable[[Table, np.ndarray, np.ndarray, int], Scores]:
    from likely import Classifier, Regressor
    from likely.networks import MLP

    def scores(table: Table, train: np.ndarray, test: np.ndarray, seed: int) -> Scores:
        kind: Any = Classifier if table.labels else Regressor
        network = {} if linear else {"network": MLP()}
        model = kind(**network, **options, random_state=seed)
        began = time.process_time()
        model.fit(table.x[train], table.y[train])
        seconds = time.process_time() - began
        x, y = table.x[test], table.y[test]
        gap = model.predict(x) - y
        return Scores(model.log_prob(x, y), (gap != 0) if table.labels else gap**2, seconds)

    return scores


def theirs(name: str) -> Callable[[Table, np.ndarray, np.ndarray, int], Scores]:
    def scores(table: Table, train: np.ndarray, test: np.ndarray, seed: int) -> Scores:
        model = _peer(name, table.labels, seed)
        x, y = table.x[train], table.y[train]
        began = time.process_time()
        model.fit(x, y)
        seconds = time.process_time() - began
        answer, wanted = model.predict(table.x[test]), table.y[test]
        if table.labels:
            columns = np.searchsorted(model.classes_, wanted)
            given = model.predict_proba(table.x[test])[np.arange(len(test)), columns]
            return Scores(np.log(np.clip(given, 1e-6, 1)), answer != wanted, seconds)
        square = np.nan_to_num((answer - wanted) ** 2, nan=DIVERGED)  # SGD on raw targets may leave all numbers behind
        variance = max(_left_out(model, name, x, y, seed), 1e-12 * float(np.var(y)))
        return Scores(-0.5 * (square / variance + np.log(2 * np.pi * variance)), square, seconds)

    return scores


def _left_out(model: Any, name: str, x: np.ndarray, y: np.ndarray, seed: int) -> float:
    """The mean squared error on rows that were not trained on."""
    if name == "forest":
        return float(np.mean((model.oob_prediction_ - y) ** 2))
    order = np.random.default_rng(seed).permutation(len(y))
    held, rest = order[: len(y) // 5], order[len(y) // 5 :]
    gap = _peer(name, False, seed).fit(x[rest], y[rest]).predict(x[held]) - y[held]
    return float(np.mean(np.nan_to_num(gap**2, nan=DIVERGED)))


def _peer(name: str, labels: bool, seed: int) -> Any:
    from sklearn import ensemble, neural_network, pipeline, preprocessing

    kind = "Classifier" if labels else "Regressor"
    if name == "forest":
        return getattr(ensemble, f"RandomForest{kind}")(random_state=seed, **({} if labels else {"oob_score": True}))
    if name == "boosting":
        return getattr(ensemble, f"HistGradientBoosting{kind}")(random_state=seed)
    network = _skorch(labels, seed) if name == "skorch" else getattr(neural_network, f"MLP{kind}")(random_state=seed)
    return network if name == "MLP" else pipeline.make_pipeline(preprocessing.StandardScaler(), network)


def _skorch(labels: bool, seed: int) -> Any:
    """The network of its first example: ten units, dropout 0.5, ten units; SGD of rate 0.1, ten epochs."""
    import torch
    from sklearn.base import BaseEstimator
    from skorch import NeuralNetClassifier, NeuralNetRegressor

    class Example(BaseEstimator):  # type: ignore[misc]
        """It learns float32 rows, and integers for labels."""

        def fit(self, x: np.ndarray, y: np.ndarray) -> Example:
            torch.manual_seed(seed)
            self.classes_ = np.unique(y)
            outputs = len(self.classes_) if labels else 1
            layers = [torch.nn.LazyLinear(10), torch.nn.ReLU(), torch.nn.Dropout(0.5), torch.nn.Linear(10, 10)]
            ends = [torch.nn.ReLU(), torch.nn.Linear(10, outputs), *([torch.nn.Softmax(dim=-1)] if labels else [])]
            kind = NeuralNetClassifier if labels else NeuralNetRegressor
            net = torch.nn.Sequential(*layers, *ends)
            self.net = kind(net, max_epochs=10, lr=0.1, iterator_train__shuffle=True, verbose=0)
            target = np.searchsorted(self.classes_, y) if labels else y.astype(np.float32)[:, None]
            self.net.fit(x.astype(np.float32), target)
            return self

        def predict(self, x: np.ndarray) -> np.ndarray:
            answer = self.net.predict(x.astype(np.float32))
            return self.classes_[answer] if labels else answer[:, 0].astype(float)

        def predict_proba(self, x: np.ndarray) -> np.ndarray:
            return self.net.predict_proba(x.astype(np.float32)).astype(float)

    return Example()


METHODS = {
    "likely": ours(linear=False),
    "linear": ours(linear=True),
    "MLP": theirs("MLP"),
    "MLP, standardised": theirs("MLP, standardised"),
    "skorch": theirs("skorch"),
    "forest": theirs("forest"),
    "boosting": theirs("boosting"),
}


def panel(
    sources: Sequence[Source],
    methods: dict[str, Callable[[Table, np.ndarray, np.ndarray, int], Scores]],
    rows: int = 50_000,
    folds: int = 5,
    cache: Path | None = None,
) -> dict[str, dict[str, Scores]]:
    """The scores of all rows of each table by each method, `{table: {method: Scores}}`; those in `cache` are kept."""
    from sklearn.model_selection import KFold

    results: dict[str, dict[str, Scores]] = {}
    for source in sources:
        table = source.read(rows)
        parted = folds if len(table.y) <= MANY else 2
        for name, method in methods.items():
            kept = None if cache is None else cache / f"{name}-{table.name}-{rows}-{folds}.npz".replace(" ", "_")
            if kept is not None and kept.exists():
                with np.load(kept) as file:
                    results.setdefault(table.name, {})[name] = Scores(file["log"], file["loss"], float(file["seconds"]))
                continue
            parts = []
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for seed, (train, test) in enumerate(KFold(parted, shuffle=True, random_state=0).split(table.x)):
                    parts.append(method(table, train, test, seed))
            log, loss = (np.concatenate([part[i] for part in parts]).astype(float) for i in (0, 1))
            scores = Scores(log, loss, float(np.median([part.seconds for part in parts])))
            results.setdefault(table.name, {})[name] = scores
            if kept is not None:
                np.savez(kept, **scores._asdict())
    return results


def run(repeats: int = 5, cache: Path | None = None) -> list[Result]:
    """Lines of both halves: mean ranks beside the best peer, the worst table beside the linear model, and times."""
    results: list[Result] = []
    for half, sources in (("tuned on", DEVELOPMENT), ("held out", HELD_OUT)):
        results += lines(
            f"networks by default, {len(sources)} tables {half}", panel(sources, METHODS, 50_000, repeats, cache)
        )
    return results


def lines(name: str, scores: dict[str, dict[str, Scores]]) -> list[Result]:
    """What the scores of some tables say."""
    results = []
    for what, sign in (("log", -1), ("loss", 1)):
        ranks = mean_ranks(scores, what, sign)
        peer = min((method for method in ranks if method != "likely"), key=ranks.__getitem__)
        words = "mean rank by " + ("log score: " if what == "log" else "RMSE or errors: ")
        words += ", ".join(f"{method} {rank:.2f}" for method, rank in sorted(ranks.items(), key=lambda pair: pair[1]))
        best = ranks["likely"] <= ranks[peer]
        results.append(Result(name, peer, ranks["likely"], ranks[peer], words, best, 1.0, "rank"))
    gaps = sorted((gap for table in scores for gap in gaps_to_linear(table, scores[table])), reverse=True)
    words = "standard errors behind the linear model: " + ", ".join(f"{where} {gap:.1f}" for gap, where in gaps[:4])
    results.append(Result(name, "linear, worst table", gaps[0][0], 2.0, words, gaps[0][0] <= 2, 1.0, "standard errors"))
    for peer in ("MLP", "MLP, standardised"):
        own, other = (np.array([table[method].seconds for table in scores.values()]) for method in ("likely", peer))
        ratio = float(np.exp(np.mean(np.log(own / other))))
        words = f"geometric mean of ratios {ratio:.2f}, from {min(own / other):.2f} to {max(own / other):.2f}"
        results.append(Result(name, f"scikit-learn's {peer}, all fits", own.sum(), other.sum(), words, True, 1.0))
    return results


def mean_ranks(scores: dict[str, dict[str, Scores]], what: str, sign: int) -> dict[str, float]:
    """Of each method over the tables, 1 for the best."""
    from scipy.stats import rankdata

    methods = list(next(iter(scores.values())))
    means = np.array([[sign * getattr(table[method], what).mean() for method in methods] for table in scores.values()])
    return dict(zip(methods, rankdata(means.round(12), axis=1).mean(0).tolist(), strict=True))


def gaps_to_linear(name: str, table: dict[str, Scores]) -> list[tuple[float, str]]:
    """How far the network is behind the linear model, in standard errors, by both scores."""
    answer = []
    for what, sign, words in (("log", -1, "log score"), ("loss", 1, "error")):
        gap = sign * (getattr(table["likely"], what) - getattr(table["linear"], what))
        answer.append((float(gap.mean() / max(gap.std() / np.sqrt(len(gap)), 1e-12)), f"{name} by {words}"))
    return answer
