"""UCI regression with the published splits: root mean squared error and test log-likelihood of every inference.

`python -m benchmarks.uci [sets and methods] [splits]` renews lines of uci.json and docs/uci.md. One hidden layer of 50
units; X and y standardised on the training rows; errors and log-likelihoods in the units of the data. Published: MC
dropout (Gal & Ghahramani, 2016; 400 epochs) and ensembles of 5 (Lakshminarayanan et al., 2017; 40 epochs).
"""

from __future__ import annotations

import json
import sys
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
from likely.models.kernel.gaussian_process import GaussianProcess
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
    ("energy", "MAP"): 5,
    **{("power_plant", method): 3 for method in ("MAP", "MC dropout")},
    **{("yacht", method): 5 for method in LONG},
    **{("energy", method): 2 for method in LONG},
    **{("power_plant", method): 1 for method in LONG},
    **{(data, "HMC"): splits for data, splits in (("yacht", 2), ("energy", 1), ("power_plant", 1))},
}
"""Where nothing is published, as many of the 20 splits as a lunch break allows; the page says how many."""
KEPT = Path(__file__).with_name("uci.json")
BELIEF = priors.Normal(1.0, biases=priors.Normal(1.0))


class Row(NamedTuple):
    """One line of the table: means over splits, and their standard errors."""

    data: str
    method: str
    budget: str
    splits: int
    error: tuple[float, float]
    log_prob: tuple[float, float]


def methods(data: str) -> dict[str, tuple[str, Callable[[int], Any]]]:
    """The models by name, with their budget in words; `power_plant` has ten times the rows and fewer epochs."""
    long, short = (40, 20) if data == "power_plant" else (400, 40)
    few = 32 if data == "power_plant" else 8
    places = ", 512 inducing points" if data == "power_plant" else ""
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
            lambda s: regressor(net, Ensemble(5, by=trained(short, batch_size=few)[1]), s, Normal(scale="input"), weak),
        ),
        "HMC": ("4 chains × 50 draws", lambda s: regressor(net, HMC(chains=4, draws=50, warmup=200), s, prior=BELIEF)),
        "SGLD": ("defaults", lambda s: regressor(net, SGLD(), s, prior=BELIEF)),
        "variational": ("mean-field, defaults", lambda s: regressor(net, Variational(), s, prior=BELIEF)),
        "Laplace": (
            f"full, after MAP of {long} epochs",
            lambda s: regressor(net, Laplace(by=trained(long)[1]), s, prior=BELIEF),
        ),
        "Gaussian process": (
            f"ARD, evidence maximised{places}",
            lambda s: GaussianProcess(1.0 * RBF(ard=True), inducing="auto", random_state=s),
        ),
    }
    return made


def evaluate(data: str, method: str, splits: int) -> Row:
    """Error and log-likelihood on each split."""
    with np.load(FOLDER / "uci_regression.npz", allow_pickle=False) as file:
        X, y = file[f"{data}_x"], file[f"{data}_y"].ravel()
        train, test = file[f"{data}_train_idx"], file[f"{data}_test_idx"]
    budget, make = methods(data)[method]
    errors, scores = [], []
    for split in range(splits):
        a, b = train[split], test[split]
        mean, scale = X[a].mean(0), X[a].std(0)
        scale[scale == 0] = 1.0
        centre, unit = y[a].mean(), y[a].std()
        model = make(split).fit((X[a] - mean) / scale, (y[a] - centre) / unit)
        rows, truth = (X[b] - mean) / scale, (y[b] - centre) / unit
        errors.append(unit * np.sqrt(np.mean((model.predict(rows) - truth) ** 2)))
        scores.append(np.mean(model.log_prob(rows, truth)) - np.log(unit))
    spread = [np.std(v, ddof=1) / len(v) ** 0.5 if splits > 1 else 0.0 for v in (errors, scores)]
    summary = [
        (round(float(np.mean(v)), 4), round(float(own), 4)) for v, own in zip((errors, scores), spread, strict=True)
    ]
    return Row(data, method, budget, splits, *summary)


def table(rows: list[Row]) -> str:
    """The page of the docs."""
    lines = [
        "# UCI regression",
        "",
        "One hidden layer of 50 units, the published random splits (mean ± standard error over splits), X and y",
        "standardised on the training rows. Errors are in the units of the target; a smaller RMSE and a larger test",
        "log-likelihood (LL, nats per row) are better. Made by `python -m benchmarks.uci`.",
        "",
        "| data | method | budget | splits | RMSE | LL | published RMSE / LL |",
        "| --- | --- | --- | ---: | ---: | ---: | --- |",
    ]
    for row in rows:
        error, score = (_with_error(number, row.splits) for number in (row.error, row.log_prob))
        known = PUBLISHED.get((row.data, row.method))
        shown = "" if known is None else f"{known[0]} / {known[1]}"
        lines.append(
            f"| {row.data} ({SIZES[row.data]} rows) | {row.method} | {row.budget} | {row.splits} | {error} | {score} "
            f"| {shown} |"
        )
    return "\n".join(lines) + "\n"


def _with_error(number: tuple[float, float], splits: int) -> str:
    mean, spread = number
    return f"{mean:.2f} ± {spread:.2f}" if splits > 1 else f"{mean:.2f}"


def write(row: Row) -> None:
    """Put a line into uci.json, to compute with, and into the page, to read."""
    known = {tuple(kept[:2]): Row(*kept) for kept in json.loads(KEPT.read_text())} if KEPT.exists() else {}
    known[row.data, row.method] = row
    ordered = [known[key] for data in SIZES for key in ((data, method) for method in methods(data)) if key in known]
    KEPT.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    page = KEPT.parents[1] / "docs" / "uci.md"
    page.write_text(table(ordered), encoding="utf-8")


def main() -> None:
    """Every method on every set, or those named (sets, methods); a number is that of splits (20 are published)."""
    arguments = sys.argv[1:]
    splits = next((int(argument) for argument in arguments if argument.isdigit()), 20)
    sets = [data for data in SIZES if data in arguments] or list(SIZES)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    for data in sets:
        for method in [name for name in methods(data) if name in arguments] or methods(data):
            row = evaluate(data, method, min(splits, FEWER.get((data, method), splits)))
            print(table([row]).splitlines()[-1], flush=True)
            write(row)


if __name__ == "__main__":
    main()
