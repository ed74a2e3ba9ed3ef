"""Attacks on one convolutional network and the same images, against torchattacks and foolbox.

PGD of 40 steps at a radius that fools nearly all images, where we stop at those that are fooled, at one that fools few,
and at one that fools none of the images that the network gets right, where all 40 steps are taken by everyone, also on
a dense network; DeepFool in the 2-norm. Peers attack the very module, whose parameters ask for gradients as those of
any module do, and also one whose parameters are frozen. No attack may be weaker: fewer images fooled, larger changes.

DeepFool's table: the mean of ‖δ‖₂/‖x‖₂ on test images, which its authors give as 0.20 for a LeNet with an error of 1 %
on MNIST, and as 0.11 for a dense network of 500 and 150 units with an error of 1.7 %.
"""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
import torch
from torch import Tensor

from likely import Classifier
from likely.inference import MAP
from likely.networks import MLP, ConvNet, Network
from likely.optim import Adam, OneCycle
from likely.robust import PGD, Attacked, DeepFool, attack

from .datasets import Split, mnist
from .timing import Result, compare, interleave, show

__all__ = ["run"]

IMAGES, FEW = 256, 64
RADII = {"all fooled": 0.2, "few fooled": 0.02}
TABLE: dict[str, tuple[Network, int, float]] = {
    "LeNet-like": (ConvNet((20, 50), kernel=5, padding="valid", hidden=(500,)), 4, 0.20),
    "500-150": (MLP((500, 150)), 12, 0.11),
}
TOLERANCE = 0.02
"""Chance in whom a random start fools."""
NONE = 0.002
"""A radius that fools no image of which the network is sure."""


def run(repeats: int = 5) -> list[Result]:
    return [*speed(repeats), *overhead(repeats), *published()]


def overhead(repeats: int = 5) -> list[Result]:
    """PGD where all steps are taken for all images, on a convolutional and a dense network, in CPU seconds."""
    import foolbox
    import torchattacks

    data, results = mnist(10_000), []
    for network in (ConvNet((16, 32), hidden=(64,)), MLP((256, 256))):
        shape = _images if isinstance(network, ConvNet) else np.asarray
        model = fitted(network, data, 1, shape)
        surest = model.log_prob(shape(data.x_test[:1_000]), data.y_test[:1_000]).argsort()[-IMAGES:]
        x, y = torch.from_numpy(shape(data.x_test[surest])), torch.from_numpy(data.y_test[surest])
        calls = {
            "likely": lambda model=model, x=x, y=y: _pairs(
                attack(model, x.numpy(), y.numpy(), PGD(NONE), bounds=(0, 1), random_state=0)
            )
        }
        for asking in (True, False):
            module = model.posterior_.module_of(0).eval().requires_grad_(asking)
            theirs = torchattacks.PGD(module, eps=NONE, alpha=2.5 * NONE / 40, steps=40, random_start=True)
            other = foolbox.attacks.LinfPGD(abs_stepsize=2.5 * NONE / 40, steps=40)
            wrapped = foolbox.PyTorchModel(module, bounds=(0, 1))
            words = "" if asking else ", frozen"
            calls |= {
                f"torchattacks{words}": lambda module=module, theirs=theirs, x=x, y=y: _judged(
                    module, x, theirs(x, y), y
                ),
                f"foolbox{words}": lambda module=module, other=other, wrapped=wrapped, x=x, y=y: _judged(
                    module, x, other(wrapped, x, y, epsilons=NONE)[1], y
                ),
            }
        targets = {"torchattacks": 1.0, "foolbox": 1 / 1.3}
        timed = interleave(calls, repeats, clock=time.process_time)
        results += compare(f"PGD-40, none fooled, {type(network).__name__}", timed, _no_weaker, targets)
    return results


def speed(repeats: int = 5) -> list[Result]:
    """PGD and DeepFool beside the peers'."""
    import foolbox
    import torchattacks

    data = mnist(10_000)
    model = fitted(ConvNet((16, 32), hidden=(64,)), data, 3)
    module = model.posterior_.module_of(0).eval().requires_grad_()
    x = torch.from_numpy(_images(data.x_test[:IMAGES]))
    y = torch.from_numpy(data.y_test[:IMAGES])
    wrapped = foolbox.PyTorchModel(module, bounds=(0, 1))
    results = []
    for name, radius in RADII.items():
        step = 2.5 * radius / 40
        theirs = torchattacks.PGD(module, eps=radius, alpha=step, steps=40, random_start=True)
        other = foolbox.attacks.LinfPGD(abs_stepsize=step, steps=40)
        calls = {
            "likely": lambda radius=radius: _pairs(
                attack(model, x.numpy(), y.numpy(), PGD(radius), bounds=(0, 1), random_state=0)
            ),
            "torchattacks": lambda theirs=theirs: _judged(module, x, theirs(x, y), y),
            "foolbox": lambda other=other, radius=radius: _judged(
                module, x, other(wrapped, x, y, epsilons=radius)[1], y
            ),
        }
        targets = {"torchattacks": 1.0, "foolbox": 1 / 1.3}
        results += compare(f"PGD-40, {name}, {data.source}", interleave(calls, repeats), _no_weaker, targets)
    few = slice(0, FEW)
    slow = torchattacks.DeepFool(module, steps=50, overshoot=0.02)
    fast = foolbox.attacks.L2DeepFoolAttack(steps=50, candidates=10, overshoot=0.02)
    calls = {
        "likely": lambda: _pairs(attack(model, x[few].numpy(), y[few].numpy(), DeepFool(), bounds=(0, 1))),
        "torchattacks": lambda: _judged(module, x[few], slow(x[few], y[few]), y[few]),
        "foolbox": lambda: _judged(module, x[few], fast(wrapped, x[few], y[few], epsilons=None)[1], y[few]),
    }
    targets = {"torchattacks": 1 / 20, "foolbox": 1 / 1.3}
    timed = interleave(calls, max(1, repeats // 2))
    return results + compare(f"DeepFool, {data.source}", timed, _no_larger, targets)


def published() -> list[Result]:
    """DeepFool's table."""
    data, results = mnist(60_000), []
    for name, (network, epochs, theirs) in TABLE.items():
        shape = _images if isinstance(network, ConvNet) else np.asarray
        model = fitted(network, data, epochs, shape)
        error = 1 - model.score(shape(data.x_test), data.y_test)
        x, y = shape(data.x_test[:1_000]), data.y_test[:1_000]
        attacked = attack(model, x, y, DeepFool())
        moved = attacked.success & (attacked.l2 > 0)
        relative = attacked.l2[moved] / np.linalg.norm(x.reshape(len(x), -1)[moved], axis=1)
        words = f"error {error:.2%}, {moved.sum()} of {len(x)} images fooled by a change"
        peer = f"published {theirs:g}"
        results.append(Result(f"DeepFool's ρ, {name}", peer, float(relative.mean()), theirs, words, True, None, ""))
    return results


def fitted(network: Network, data: Split, epochs: int, shape: Any = None) -> Classifier:
    inference = MAP(Adam(2e-3), epochs=epochs, batch_size=128, schedule=OneCycle())
    return Classifier(network=network, inference=inference, random_state=0).fit((shape or _images)(data.x), data.y)


def _images(rows: np.ndarray) -> np.ndarray:
    return rows.reshape(-1, 1, 28, 28)


def _pairs(attacked: Attacked) -> tuple[float, float]:
    """The fraction fooled, and the mean change of those."""
    return attacked.rate, float(np.mean(attacked.l2[attacked.success])) if attacked.success.any() else math.inf


@torch.no_grad()
def _judged(module: Any, x: Tensor, changed: Tensor, y: Tensor) -> tuple[float, float]:
    fooled = module(changed).argmax(1) != y
    sizes = (changed - x).flatten(1).norm(dim=1)[fooled]
    return float(fooled.float().mean()), float(sizes.mean()) if len(sizes) else math.inf


def _no_weaker(mine: tuple[float, float], other: tuple[float, float]) -> tuple[str, bool]:
    return f"fooled {mine[0]:.3f} and {other[0]:.3f}", mine[0] >= other[0] - TOLERANCE


def _no_larger(mine: tuple[float, float], other: tuple[float, float]) -> tuple[str, bool]:
    words = f"fooled {mine[0]:.3f} and {other[0]:.3f}, mean ‖δ‖₂ {mine[1]:.3f} and {other[1]:.3f}"
    if other[0] < mine[0] - TOLERANCE:  # whom they do not fool are those that need the largest changes
        return words, True
    return words, mine[0] >= other[0] - TOLERANCE and mine[1] <= (1 + TOLERANCE) * other[1]


if __name__ == "__main__":
    show(run())
