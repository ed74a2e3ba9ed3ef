"""Gradient training of a small network, where what a step costs besides arithmetic decides.

1,797 × 64, hidden 100, batches of 200, 50 epochs of Adam(1e-3); with torch's own number of threads, and with one. With
one thread also other activations and likelihoods, and five members at once, against the loop for the same loss.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import r2_score
from sklearn.neural_network import MLPClassifier, MLPRegressor
from torch import nn
from torch.nn import functional

from likely import Classifier, Regressor
from likely.inference import MAP, Ensemble
from likely.likelihoods import Normal, Poisson
from likely.networks import MLP
from likely.optim import Adam

from .datasets import Split, digits
from .loops import network, predict_module, skorch_fit, torch_fit
from .timing import Result, compare, interleave, show, with_threads

__all__ = ["run"]

HIDDEN, BATCH, EPOCHS, MEMBERS = 100, 200, 50, 5
FUSED = "PyTorch loop, fused Adam"
TARGETS = {"scikit-learn": 1 / 1.5, FUSED: 1 / 1.8, "skorch": 1 / 3}
MARGIN = 0.01
TRAINING = MAP(Adam(1e-3), epochs=EPOCHS, batch_size=BATCH)


def run(repeats: int = 7) -> list[Result]:
    return [
        *measure("map_small", repeats),
        *with_threads(1, lambda: measure("map_small, one thread", repeats)),
        *with_threads(1, lambda: [line for name, case in cases().items() for line in versus_loop(name, case, repeats)]),
    ]


def measure(name: str, repeats: int) -> list[Result]:
    data = digits()
    data_and_steps = (lambda: network(data.x.shape[1], HIDDEN, 10), data.x, data.y, BATCH, EPOCHS)
    calls = {
        "likely": lambda: likely_fit(data),
        "PyTorch loop": lambda: torch_fit(*data_and_steps),
        FUSED: lambda: torch_fit(*data_and_steps, fused=True),
        "scikit-learn": lambda: sklearn_fit(MLPClassifier, data.x, data.y),
        "skorch": lambda: skorch_fit(*data_and_steps),
    }
    timed = interleave(calls, repeats)

    def quality(mine: Any, other: Any) -> tuple[str, bool]:
        ours, theirs = accuracy(mine, data), accuracy(other, data)
        return f"{data.source}: training accuracy {ours:.4f} and {theirs:.4f}", ours >= theirs - MARGIN

    return compare(name, timed, quality, TARGETS)


# --- other likelihoods, activations, ensembles ----------------------------------------------------------------------
class Case(NamedTuple):
    """Two fits of one model, and what is compared of their answers."""

    likely: Callable[[], Any]
    loop: Callable[[], Any]
    peer: Callable[[], Any] | None
    score: Callable[[np.ndarray], float]


def cases() -> dict[str, Case]:
    """Labels of digits by other activations and by an ensemble; the digit as a number and as a count."""
    data = digits()
    number = data.y.astype(np.float32)

    def right(labels: np.ndarray) -> float:
        return float(np.mean(labels == data.y))

    def explained(numbers: np.ndarray) -> float:
        return float(r2_score(number, numbers))

    def labels(activation: type[nn.Module] = nn.ReLU, seed: int = 0) -> nn.Module:
        build = lambda: network(data.x.shape[1], HIDDEN, 10, activation)  # noqa: E731
        return torch_fit(build, data.x, data.y, BATCH, EPOCHS, fused=True, seed=seed)

    def numbers(loss_of: Any) -> nn.Module:
        build = lambda: network(data.x.shape[1], HIDDEN, 1)  # noqa: E731
        return torch_fit(build, data.x, number, BATCH, EPOCHS, fused=True, loss_of=loss_of)

    def regressor(likelihood: Any) -> Regressor:
        model = Regressor(likelihood, network=MLP((HIDDEN,)), inference=TRAINING, random_state=0)
        return model.fit(data.x, number)

    by_number = lambda: sklearn_fit(MLPRegressor, data.x, number)  # noqa: E731
    return {
        "tanh": Case(lambda: likely_fit(data, "tanh"), lambda: labels(nn.Tanh), None, right),
        "gelu": Case(lambda: likely_fit(data, "gelu"), lambda: labels(nn.GELU), None, right),
        "Normal": Case(lambda: regressor(Normal()), lambda: numbers(functional.mse_loss), by_number, explained),
        "Poisson": Case(
            lambda: regressor(Poisson()), lambda: _Exponential(numbers(functional.poisson_nll_loss)), None, explained
        ),
        f"ensemble of {MEMBERS}": Case(
            lambda: likely_fit(data, inference=Ensemble(MEMBERS, by=TRAINING)),
            lambda: [labels(seed=seed) for seed in range(MEMBERS)],
            None,
            right,
        ),
    }


class _Exponential(nn.Module):
    """exp of what a network gives: the mean of counts."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Any) -> Any:
        return self.inner(x).exp()


def versus_loop(name: str, case: Case, repeats: int) -> list[Result]:
    x = digits().x
    calls = {"likely": case.likely, FUSED: case.loop} | ({} if case.peer is None else {"scikit-learn": case.peer})

    def quality(mine: Any, other: Any) -> tuple[str, bool]:
        ours, theirs = (case.score(answers(model, x)) for model in (mine, other))
        return f"digits: score {ours:.4f} and {theirs:.4f} on the training rows", ours >= theirs - MARGIN

    return compare(f"map_small, {name}, one thread", interleave(calls, repeats), quality, TARGETS)


# --- fits -----------------------------------------------------------------------------------------------------------
def likely_fit(data: Split, activation: str = "relu", inference: Any = TRAINING) -> Classifier:
    model = Classifier(network=MLP((HIDDEN,), activation), inference=inference, random_state=0)
    return model.fit(data.x, data.y)


def sklearn_fit(kind: Any, x: np.ndarray, y: np.ndarray) -> Any:
    model = kind(hidden_layer_sizes=(HIDDEN,), batch_size=BATCH, max_iter=EPOCHS, alpha=0.0, tol=0.0, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(x, y)


def answers(model: Any, x: np.ndarray) -> np.ndarray:
    """Those of a model or module; of several modules, those of the first."""
    first = model[0] if isinstance(model, list) else model
    return first.predict(x) if hasattr(first, "predict") else predict_module(first, x)


def accuracy(model: Any, data: Split) -> float:
    return float(np.mean(answers(model, data.x) == data.y))


if __name__ == "__main__":
    show(run())
