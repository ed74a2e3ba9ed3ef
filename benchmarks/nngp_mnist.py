"""A network Gaussian process on MNIST: the accuracy of the published kernel of 20 hidden layers, 1,000 images.

Lee et al. (2018) report 92.79 % for tanh, depth 20, σw² = 1.45, σb² = 0.28. As in their code, the images are the first
100 of each digit after the 10,000 that were kept for validation, each with mean 0 and variance 1.
"""

from __future__ import annotations

import time

import numpy as np

from likely.kernels import NNGP
from likely.models.kernel.kernel_ridge import KernelRidge
from likely.networks import MLP

from .datasets import Split, mnist
from .timing import Result, show

__all__ = ["run"]

PUBLISHED = 0.9279
ASKED = 0.925
VALIDATION = 10_000
EACH = 100


def run(repeats: int = 1) -> list[Result]:
    split = mnist(60_000)
    x, y = _first_of_each(split)
    x, x_test = _standardised(x), _standardised(split.x_test)
    target = np.eye(10)[y] - 0.1
    kernel = NNGP(MLP((512,) * 20, activation="tanh"), weight_variance=1.45, bias_variance=0.28)
    start = time.perf_counter()
    model = KernelRidge(kernel, alpha=1e-10).fit(x, target)
    accuracy = float((model.predict(x_test).argmax(1) == split.y_test).mean())
    seconds = time.perf_counter() - start
    words = f"{split.source}: accuracy {accuracy:.4f} on 10,000 images in {seconds:.0f} s (asked {ASKED})"
    line = Result(
        "NNGP, 20 layers, 1,000 images: error", "published", 1 - accuracy, 1 - PUBLISHED, words, accuracy >= ASKED
    )
    return [Result(**{**line.__dict__, "unit": "of all", "target": (1 - ASKED) / (1 - PUBLISHED)})]


def _first_of_each(split: Split) -> tuple[np.ndarray, np.ndarray]:
    """The first images of each digit after those for validation."""
    after = np.arange(min(VALIDATION, len(split.y) // 2), len(split.y))
    rows = np.concatenate([after[split.y[after] == digit][:EACH] for digit in range(10)])
    return split.x[rows], split.y[rows]


def _standardised(x: np.ndarray) -> np.ndarray:
    """Each image with mean 0 and variance 1."""
    return (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True)


if __name__ == "__main__":
    show(run())
