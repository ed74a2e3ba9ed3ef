"""attack: rows changed a little so that a model errs, checked again by asking the model."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..core.denormals import flushed
from ..core.errors import ApproximationWarning
from ..core.quiet import quiet
from ..core.random import drawing, seed_of
from ..core.spec import as_spec
from ..core.threads import threads_for
from ..models.supervised.base import as_array
from ..optim.ascent import Attack
from ..optim.ball import sizes
from ..optim.bounds import check_radius
from .victims import Victim, victim_of

__all__ = ["Attacked", "attack", "attacked", "check_reach"]


@dataclass(frozen=True)
class Attacked:
    """What an attack made of rows, with one entry per row."""

    perturbed: Any
    """The changed rows, in the form of X: an array, a tensor or a frame."""
    success: np.ndarray
    """Whether the model errs on them: what its `predict` says, not what the attack believes."""
    predicted: np.ndarray
    """What `predict` says of them."""
    steps: np.ndarray
    """Gradient steps that were taken."""
    l1: np.ndarray
    l2: np.ndarray
    linf: np.ndarray

    @property
    def rate(self) -> float:
        """The fraction of rows on which the model errs."""
        return float(self.success.mean())

    def size(self, norm: float) -> np.ndarray:
        """‖x′ − x‖ₚ of each row for p = 1, 2 or ∞."""
        return {1: self.l1, 2: self.l2, math.inf: self.linf}[norm]

    def __str__(self) -> str:
        fooled = f"{int(self.success.sum())} of {len(self.success)} rows fooled"
        if not self.success.any():
            return fooled
        means = [float(size[self.success].mean()) for size in (self.l1, self.l2, self.linf)]
        return fooled + ", mean sizes l1 {:.3g}, l2 {:.3g}, linf {:.3g}".format(*means)


def attack(
    model: Any,
    X: Any,
    y: Any = None,
    method: Any = "pgd(0.1)",
    *,
    bounds: Any = None,
    threshold: Any = None,
    random_state: Any = None,
) -> Attacked:
    """Change rows X a little so that the model errs on targets y.

    `model` is a fitted `Classifier` or `Regressor`, with whatever posterior, a `GaussianProcess`, `KernelRidge`,
    `NaiveBayes`, `Perceptron`, `SupportVector` or `TableModel`, or a function from rows (n, …) to logits (n, classes),
    such as a module, which is asked as it evaluates (a copy of it, if it is in training); y of None stands for its own
    answers. X, radii and `bounds=(low, high)`, which the changed rows stay in, are in the units of X: what the model
    does to its inputs is its own affair. Bounds are numbers, arrays of the shape of a row, or None on a side that has
    none. A row on which the model errs already is left as it is.

    Of a table the columns of numbers are changed, in their own units, and may not have gaps; categories, dates,
    booleans and text stay, and the rows come back as the table that they were. Bounds are then numbers, or dicts of
    numbers by the names of columns. Columns that `NaiveBayes` takes for labels or counts stay too.

    A regressor errs where its prediction is off y by more than `threshold`, in the units of y; by default two standard
    deviations of its own prediction for the row. (With y of None, that is how far the prediction has moved.)

    >>> from likely import Classifier
    >>> from likely.robust import DeepFool
    >>> X, y = [[0.0, 0.0], [1.0, 0.0], [0.0, 2.0], [1.0, 3.0]], [0, 0, 1, 1]
    >>> model = Classifier(network="mlp([8])", inference="map(adam(0.1), epochs=100)", random_state=0).fit(X, y)
    >>> found = attack(model, X, y, DeepFool())
    >>> found.success.all(), model.predict(found.perturbed).tolist()
    (np.True_, [1, 1, 0, 0])
    """
    spec = as_spec(method, Attack, "method")
    check_reach(model, X, spec, getattr(spec, "radius", None), bounds, threshold)
    return attacked(model, X, y, spec, bounds=bounds, threshold=threshold, random_state=random_state)


def check_reach(model: Any, X: Any, spec: Attack, radius: float | None, bounds: Any, threshold: Any) -> None:
    """Refuse a radius of an attack that is not in the units of X."""
    if radius is not None:
        victim = victim_of(model, threshold)
        x = victim.read(X)
        check_radius(radius, spec.p, x, victim.bounds(bounds, x), victim.span)


def attacked(
    model: Any, X: Any, y: Any, spec: Attack, *, bounds: Any, threshold: Any, random_state: Any, stacklevel: int = 3
) -> Attacked:
    """What `attack` answers, whatever the radius is beside X: rows may be a few of those that it was checked for."""
    victim = victim_of(model, threshold)
    x = victim.read(X)
    limits = victim.limits(victim.bounds(bounds, x))
    targets = victim.targets(x, X, y)
    parts = []
    with drawing(seed_of(random_state)), threads_for(victim.work), flushed():
        for first in range(0, len(x), victim.rows):
            rows = slice(first, first + victim.rows)
            parts.append(spec.perturb(victim, x[rows], targets[rows], limits))
    point, steps = torch.cat([part.point for part in parts]), torch.cat([part.steps for part in parts])
    perturbed = victim.changed(X, x, point, bounds)
    with quiet(UserWarning, "X does not have valid feature names"):  # they are the same columns
        answers = victim.answers(perturbed)
    success = victim.wrong(answers, targets)
    left = torch.from_numpy(~success).to(x.device)
    if not success.all() and bool((point == x).all()) and _is_flat(victim, x[left], targets[left]):
        _warn_of_flat(stacklevel=stacklevel + 1)
    delta = (point - x).double()
    norms = [as_array(sizes(delta, norm)) for norm in (1, 2, math.inf)]
    return Attacked(perturbed, success, answers, as_array(steps), *norms)


def _is_flat(victim: Victim, x: Tensor, y: Tensor) -> bool:
    """Whether the gradient of the loss is 0 at all rows."""
    parts = zip(x.split(victim.rows), y.split(victim.rows), strict=True)
    return not any(bool(victim.follow(rows, own)[2].any()) for rows, own in parts)


def _warn_of_flat(*, stacklevel: int) -> None:
    warnings.warn(
        "No row changed: the gradient is 0 at all of them. The network has steps (sign, round), none of its ReLUs is "
        "active there, or it is so sure that its probabilities are 0 and 1 to the last digit.",
        ApproximationWarning,
        stacklevel=stacklevel,
    )
