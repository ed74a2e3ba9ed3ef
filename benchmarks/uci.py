"""UCI regression with the published splits: root mean squared error and test log-likelihood of every inference.

`python -m benchmarks.uci [splits]` writes docs/uci.md. One hidden layer of 50 units; X and y standardised on the
training rows; errors and log-likelihoods in the units of the data. Published: MC dropout (Gal & Ghahramani, 2016;
400 epochs) and ensembles of 5 (Lakshminarayanan et al., 2017; 40 epochs).
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from likely import Regressor, priors
from likely.inference import HMC, MAP, SGLD, Ensemble, Laplace, MCDropout, Variational
from likely.kernels import RBF
from likely.likelihoods import Normal
from likely.models.gaussian_process import GaussianProcess
from likely.networks import MLP
from likely.optim import Adam, Cosine

from .datasets import FOLDER

__all__ = ["main"]

PUBLISHED = {
    ("energy", "MC dropout"): (0.54, -1.21),
    ("yacht", "MC dropout"): (0.67, -1.25),
    ("energy", "ensemble of 5"): (2.09, -1.38),
    ("power_plant", "ensemble of 5"): (4.11, -2.79),
    ("yacht", "ensemble of 5"): (1.58, -1.18),
}
SIZES = {"yacht": 308, "energy": 768, "power_plant": 9568}
LONG = ("SGLD", "variational", "Laplace", "Gaussian process")
FEWER = {
    **{("energy", method): 5 for method in LONG},
    **{("power_plant", method): 3 for method in ("MAP", "MC dropout", *LONG)},
    ("yacht", "HMC"): 10,
    ("energy", "HMC"): 3,
    ("power_plant", "HMC"): 1,
}
"""Where nothing is published, as many of the 20 splits as a coffee break allows; the page says how many."""
BELIEF = priors.Normal(1.0, biases=priors.Normal(1.0))


class Row(NamedTuple):
    """One line of the table."""

    data: str
    method: str
    budget: str
    splits: int
    error: np.ndarray
    log_prob: np.ndarray
    seconds: float


def methods(data: str) -> dict[str, tuple[str, Callable[[int], Any]]]:
    """The models by name, with their budget in words; `power_plant` has ten times the rows and fewer epochs."""
    long, short = (40, 20) if data == "power_plant" else (400, 40)
    few = 32 if data == "power_plant" else 8
    net = MLP((50,))

    def trained(epochs: int, dropout: float = 0.0, batch_size: int = 32) -> tuple[MLP, MAP]:
        training = MAP(Adam(0.01), epochs=epochs, batch_size=batch_size, schedule=Cosine())
        return MLP((50,), dropout=dropout), training

    def regressor(network: Any, inference: Any, seed: int, likelihood: Any = None, prior: Any = None) -> Regressor:
        chosen = {"prior": prior} if prior is not None else {}
        return Regressor(likelihood or Normal(), network, inference=inference, random_state=seed, **chosen)

    weak = priors.Normal(3.0)
    made: dict[str, tuple[str, Callable[[int], Any]]] = {
        "MAP": (f"{long} epochs", lambda s: regressor(*trained(long), s, prior=weak)),
        "MC dropout": (
            f"{long} epochs, dropout 0.005, 100 masks",
            lambda s: regressor(trained(long, 0.005)[0], MCDropout(100, by=trained(long)[1]), s, prior=weak),
        ),
        "ensemble of 5": (
            f"{short} epochs each, batches of {few}, σ(x)",
            lambda s: regressor(
                net, Ensemble(5, by=trained(short, batch_size=few)[1]), s, Normal(scale="input"), weak
            ),
        ),
        "HMC": ("4 chains × 50 draws", lambda s: regressor(net, HMC(chains=4, draws=50, warmup=200), s, prior=BELIEF)),
        "SGLD": ("defaults", lambda s: regressor(net, SGLD(), s, prior=BELIEF)),
        "variational": ("mean-field, defaults", lambda s: regressor(net, Variational(), s, prior=BELIEF)),
        "Laplace": (
            f"full, after MAP of {long} epochs",
            lambda s: regressor(net, Laplace(by=trained(long)[1]), s, prior=BELIEF),
        ),
        "Gaussian process": ("ARD, evidence maximised", lambda s: GaussianProcess(1.0 * RBF(ard=True), random_state=s)),
    }
    return made


def evaluate(data: str, method: str, splits: int) -> Row:
    """Error and log-likelihood on each split."""
    with np.load(FOLDER / "uci_regression.npz", allow_pickle=False) as file:
        X, y = file[f"{data}_x"], file[f"{data}_y"].ravel()
        train, test = file[f"{data}_train_idx"], file[f"{data}_test_idx"]
    budget, make = methods(data)[method]
    errors, scores = [], []
    start = time.perf_counter()
    for split in range(splits):
        a, b = train[split], test[split]
        mean, scale = X[a].mean(0), X[a].std(0)
        scale[scale == 0] = 1.0
        centre, unit = y[a].mean(), y[a].std()
        model = make(split).fit((X[a] - mean) / scale, (y[a] - centre) / unit)
        rows, truth = (X[b] - mean) / scale, (y[b] - centre) / unit
        errors.append(unit * np.sqrt(np.mean((model.predict(rows) - truth) ** 2)))
        scores.append(np.mean(model.log_prob(rows, truth)) - np.log(unit))
    seconds = (time.perf_counter() - start) / splits
    return Row(data, method, budget, splits, np.array(errors), np.array(scores), seconds)


def table(rows: list[Row]) -> str:
    """The page of the docs."""
    lines = [
        "# UCI regression",
        "",
        "One hidden layer of 50 units, the published random splits (mean ± standard error over splits), X and y",
        "standardised on the training rows. Errors are in the units of the target; a smaller RMSE and a larger test",
        "log-likelihood (LL, nats a row) are better.",
        "Made by `python -m benchmarks.uci`; seconds are of one fit with its predictions, on 2 cores.",
        "",
        "| data | method | budget | splits | RMSE | LL | published RMSE / LL | seconds |",
        "| --- | --- | --- | ---: | ---: | ---: | --- | ---: |",
    ]
    for row in rows:
        error, score = (f"{v.mean():.2f} ± {v.std() / max(1, len(v)) ** 0.5:.2f}" for v in (row.error, row.log_prob))
        known = PUBLISHED.get((row.data, row.method))
        shown = "" if known is None else f"{known[0]} / {known[1]}"
        lines.append(
            f"| {row.data} ({SIZES[row.data]} rows) | {row.method} | {row.budget} | {row.splits} | {error} | {score} "
            f"| {shown} | {row.seconds:.1f} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Every method on every set; the number of splits may be given (20 are published)."""
    splits = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    chosen = sys.argv[2:]
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    rows = []
    for data in SIZES:
        for method in methods(data):
            if chosen and method not in chosen:
                continue
            rows.append(evaluate(data, method, min(splits, FEWER.get((data, method), splits))))
            print(table(rows).splitlines()[-1], flush=True)
            if not chosen:
                page = Path(__file__).resolve().parents[1] / "docs" / "uci.md"
                page.write_text(table(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
