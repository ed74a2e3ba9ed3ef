"""Certificates by bounds on a network: no change within a radius can change its answer, with certainty.

    Lipschitz    ‖δ‖₂ < min over k of  (z_y − z_k) / (‖w_y − w_k‖₂ · Π Lᵢ)       w: the last layer, Lᵢ those before it
    intervals    ‖δ‖∞ ≤ r   where   min over the intervals of  z_y − z_k  >  0   for all k

Both need one pass through the layers (see `likely.robust.layers`), and both hold for every member of a posterior: where
all members give an answer within a radius, so does their average.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..core.errors import SpecError
from ..core.threads import threads_for
from ..likelihoods import Bernoulli, Categorical
from ..models import Classifier
from ..models.supervised.base import as_array
from ..optim.bounds import Bounds, check_radius
from .certify import Certified
from .layers import Bounded, chain_of, head_of, known
from .victims import scoring_of

__all__ = ["certify_by_intervals", "certify_by_lipschitz", "lipschitz"]

HALVINGS = 28
"""Of the range in which the logarithm of the largest certified radius is looked for: to a millionth of the radius."""
OCTAVES = 40.0
"""That range, to base 2: from 10⁻¹² to 10¹². It must not depend on X, or a row's radius would on its neighbours."""
SPREAD = ("laplace", "dropout")
"""Posteriors whose answer is not an average over members that bounds could be found for."""


def lipschitz(model: Any, shape: tuple[int, ...] | None = None) -> float:
    """L with ‖z(x) − z(x′)‖₂ ≤ L ‖x − x′‖₂ for the logits z: the product of the lengths of all layers.

    `model` is a fitted `Classifier` (the largest L of its members), or an `nn.Module` with the `shape` of a row. x is
    in the units of X.

    >>> network = nn.Sequential(nn.Linear(2, 3, bias=False), nn.ReLU(), nn.Linear(3, 2))
    >>> norms = [torch.linalg.matrix_norm(layer.weight.double(), 2).item() for layer in (network[0], network[2])]
    >>> round(lipschitz(network, (2,)) / (norms[0] * norms[1]), 6)
    1.0
    """
    if shape is None:
        if not isinstance(model, Classifier) or not hasattr(model, "in_shape_"):
            raise SpecError("lipschitz needs a fitted Classifier, or a module and the shape of a row.")
        shape = tuple(model.in_shape_)
    return max(_length(chain_of(module), shape) for module in _members(model))


def certify_by_lipschitz(model: Any, X: Any) -> Certified:
    """The radius in the 2-norm within which no row's answer can change, by the lengths of the layers.

    Cheap, and small for networks that were not trained for it: layers are taken to conspire.

    >>> from likely import Classifier
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"]
    >>> certify_by_lipschitz(Classifier(prior="normal(1.0)").fit(X, y), X).radius.round(6)  # exact where it is linear
    array([1.5, 0.5, 0.5, 1.5])
    """

    def radii(module: nn.Module, x: Tensor, label: Tensor, classes: int) -> Tensor:
        body, weight, bias = head_of(chain_of(module), classes)
        before = _length(body, tuple(x.shape[1:]))
        features = _through(body, x)
        gaps, rest = weight[label].unsqueeze(1) - weight, bias[label].unsqueeze(1) - bias
        margins = torch.einsum("nkd,nd->nk", gaps, features) + rest
        lengths = before * torch.linalg.vector_norm(gaps, dim=2)
        others = torch.where(lengths > 0, margins / lengths.clamp_min(1e-300), math.inf * margins.sign())
        return others.scatter(1, label.unsqueeze(1), math.inf).amin(1)

    return _certified(model, X, radii, 2.0)


def certify_by_intervals(model: Any, X: Any, radius: float | None = None) -> Certified:
    """Whether no change within `radius` in the ∞-norm changes a row's answer, by interval arithmetic.

    Without a radius, the largest one that can be certified.

    >>> from likely import Classifier
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"]
    >>> model = Classifier(prior="normal(1.0)").fit(X, y)
    >>> certify_by_intervals(model, X, 0.8).abstained
    array([False,  True,  True, False])
    >>> certify_by_intervals(model, X).radius.round(4)
    array([1.5, 0.5, 0.5, 1.5])
    """
    number = isinstance(radius, int | float | np.number) and not isinstance(radius, bool)
    if radius is not None and not (number and 0 < radius < math.inf):
        raise SpecError(f"radius={radius!r} must be a positive number, in the units of X, or None.")

    def radii(module: nn.Module, x: Tensor, label: Tensor, classes: int) -> Tensor:
        body, weight, bias = head_of(chain_of(module), classes)
        gaps, rest = weight[label].unsqueeze(1) - weight, bias[label].unsqueeze(1) - bias

        def holds(reach: Tensor) -> Tensor:
            """Whether all margins stay above 0 within a reach of each row."""
            wide = reach.reshape(-1, *[1] * (x.ndim - 1))
            bounded = Bounded(x - wide, x + wide)
            for layer in body:
                bounded = known(layer).interval(layer, bounded)
            centre, spread = (bounded.low + bounded.high) / 2, (bounded.high - bounded.low) / 2
            least = torch.einsum("nkd,nd->nk", gaps, centre) - torch.einsum("nkd,nd->nk", gaps.abs(), spread) + rest
            return (least.scatter(1, label.unsqueeze(1), math.inf) > 0).all(1)

        if radius is not None:
            asked = torch.full((len(x),), radius, dtype=x.dtype)  # in float32 it would be another number
            return torch.where(holds(asked), asked, torch.zeros_like(asked))
        low, high = (torch.full((len(x),), end, dtype=x.dtype) for end in (-OCTAVES, OCTAVES))
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            sound = holds(middle.exp2())
            low, high = torch.where(sound, middle, low), torch.where(sound, high, middle)
        return torch.where(low > -OCTAVES, low.exp2(), torch.zeros_like(low))

    if radius is not None:
        _members(model)
        victim = scoring_of(model)
        check_radius(radius, math.inf, victim.read(X), Bounds(), victim.span, advice="")
    return _certified(model, X, radii, math.inf)


def _certified(model: Any, X: Any, radii: Callable[[nn.Module, Tensor, Tensor, int], Tensor], norm: float) -> Certified:
    """The least radius over the members, of the answer that the model gives."""
    members = _members(model)
    victim = scoring_of(model)
    x = victim.read(X)
    labels = victim.targets(x, X, None)
    with threads_for(victim.work), torch.no_grad():
        classes = max(2, victim.scores(x[:1]).shape[1])
        least = [
            torch.cat(
                [
                    radii(module, part.double(), label, classes)
                    for part, label in zip(x.split(victim.rows), labels.split(victim.rows), strict=True)
                ]
            )
            for module in members
        ]
    radius = as_array(torch.stack(least).amin(0).clamp_min(0).double())
    return Certified(victim.answers(X), radius, radius <= 0, norm)


def _members(model: Any) -> list[nn.Module]:
    if isinstance(model, Classifier):
        if not hasattr(model, "posterior_"):
            raise SpecError("The Classifier is not fitted yet; call fit first.")
        posterior, likelihood = model.posterior_, model.likelihood_
        if posterior.kind in SPREAD:
            raise SpecError(f"Bounds are known for members, not for a {posterior.kind} posterior: use certify.")
        if not isinstance(likelihood, Bernoulli | Categorical):
            raise SpecError(f"Bounds are known for logits of classes; {likelihood!r} has others: use certify.")
        return [posterior.module_of(index) for index, weight in enumerate(posterior.weights.tolist()) if weight]
    if isinstance(model, nn.Module):
        return [model]
    raise SpecError(f"Bounds are known for a Classifier or a module; found {type(model).__name__}: use certify.")


def _length(chain: list[nn.Module], shape: tuple[int, ...]) -> float:
    """The product of the lengths of layers, for rows of this shape."""
    x, total = torch.zeros(2, *shape, dtype=torch.float64), 1.0
    with torch.no_grad():
        for layer in chain:
            total *= known(layer).length(layer, x.shape[1:])
            x = layer(x)
    return total


def _through(chain: list[nn.Module], x: Tensor) -> Tensor:
    for layer in chain:
        x = layer(x)
    return x
