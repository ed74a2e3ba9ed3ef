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
from ..core.errors import ApproximationWarning, DataError
from ..core.quiet import quiet
from ..core.random import drawing, seed_of
from ..core.spec import as_spec
from ..core.threads import threads_for
from ..models.supervised.base import as_array
from ..optim.ascent import Attack, Bounds, check_radius
from ..optim.ball import sizes
from .victims import victim_of

__all__ = ["Attacked", "attack", "bounds_of"]


@dataclass(frozen=True)
class Attacked:
    """What an attack made of rows; every array has one entry per row."""

    perturbed: np.ndarray
    """The changed rows, in the form of X."""
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

    `model` is a fitted `Classifier` or `Regressor`, with whatever posterior, or a function from rows (n, …) to logits
    (n, classes); y of None stands for its own answers. X, radii and `bounds=(low, high)`, which the changed rows stay
    in, are in the units of X: what the model does to its inputs is its own affair. A row on which the model errs
    already is left as it is.

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
    victim = victim_of(model, threshold)
    x = victim.read(X)
    limits = bounds_of(bounds, x)
    radius = getattr(spec, "radius", None)
    if radius is not None:
        check_radius(radius, spec.p, x, limits)
    targets = victim.targets(x, X, y)
    parts = []
    with drawing(seed_of(random_state)), threads_for(victim.work), flushed():
        for first in range(0, len(x), victim.rows):
            rows = slice(first, first + victim.rows)
            parts.append(spec.perturb(victim, x[rows], targets[rows], limits))
    point, steps = torch.cat([part.point for part in parts]), torch.cat([part.steps for part in parts])
    perturbed = _in_form(X, x, point, bounds)
    with quiet(UserWarning, "X does not have valid feature names"):  # they are the same columns
        answers = victim.answers(perturbed)
    success = victim.wrong(answers, targets)
    _warn_of_flat(bool((point == x).all()) and not success.all())
    delta = (point - x).double()
    norms = [as_array(sizes(delta, norm)) for norm in (1, 2, math.inf)]
    return Attacked(perturbed, success, answers, as_array(steps), *norms)


def bounds_of(bounds: Any, x: Tensor) -> Bounds:
    """`(low, high)`, numbers or arrays of the shape of a row; the rows must lie inside.

    >>> bounds_of((0, 1), torch.tensor([[0.5]]))
    Bounds(low=tensor(0.), high=tensor(1.))
    """
    if bounds is None:
        return Bounds()
    try:
        low, high = (torch.as_tensor(np.asarray(part, dtype=float)).to(x) for part in bounds)
        sound = bool((low < high).all())
        inside = bool((low.expand_as(x) <= x).all()) and bool((x <= high.expand_as(x)).all())
    except (TypeError, ValueError, RuntimeError) as error:
        raise DataError(
            f"bounds={bounds!r} must be (low, high): numbers, or arrays of the shape of a row {tuple(x.shape[1:])}."
        ) from error
    if not sound:
        raise DataError(f"bounds={bounds!r}: low must be below high.")
    if not inside:
        raise DataError(f"X goes from {float(x.min()):g} to {float(x.max()):g}, beyond bounds={bounds!r}.")
    return Bounds(low, high)


def _in_form(X: Any, x: Tensor, point: Tensor, bounds: Any) -> np.ndarray:
    """As an array of the dtype of X, where that has fractions; what did not change is what it was."""
    changed = as_array(point)
    if not isinstance(X, np.ndarray) or X.dtype.kind != "f" or X.shape != changed.shape:
        return changed
    changed = np.where(as_array(point == x), X, changed).astype(X.dtype)
    return changed if bounds is None else np.clip(changed, *(np.asarray(part, X.dtype) for part in bounds))


def _warn_of_flat(flat: bool) -> None:
    if flat:
        warnings.warn(
            "No row changed: the gradient is 0 at all of them. The network has steps (sign, round), or is so sure that "
            "its probabilities are 0 and 1 to the last digit.",
            ApproximationWarning,
            stacklevel=3,
        )
