"""Posteriors that cannot be normalised: where log p(θ | data) does not fall, no number of draws is enough.

    ∫ p(y | θ) p(θ) dθ = ∞   if along some direction p falls no faster than 1/t

Seen by walking out: from the middle of the posterior along each direction, tenfold farther must be more than tenfold
less probable, in one of two strides at least: a mixture has valleys between its modes, and the far side of one is more
probable than its bottom. A normal prior of every parameter holds any posterior, and nothing is to be seen then.
A flat one holds no posterior of a model with several components, and nothing needs to be seen: where one has the
probability 0, the others explain the data, and neither how small it is nor its parameters matter.
"""

from __future__ import annotations

import math
import warnings

import torch
from torch import Tensor

from ...core.errors import ApproximationWarning, TrainingError
from ...priors import Flat
from ..coordinates import CoordinateDensity, Coordinates
from ..log_posterior import LogPosterior

__all__ = ["check_proper"]

REACH = 700.0
"""A plateau this far (in log p) below the middle holds no draw that a chain would ever meet."""
STRIDES = (30.0, 300.0, 3000.0)
"""How far from the middle log p is looked at, in standard deviations."""
LOOKED_AT = 64
"""Parameters of a network that are walked along."""


@torch.no_grad()
def check_proper(target: LogPosterior, coordinates: Coordinates, position: Tensor, prior: object) -> None:
    """Raise for a linear model whose weights have no proper posterior; warn where other parameters have none."""
    if target.held:
        return
    if target.problem.objective.may_empty and isinstance(prior, Flat):
        warnings.warn(
            f"The posterior is improper: while one component has no rows, the others explain the data, and {prior!r} "
            "holds neither its probability nor its parameters, so chains may wander off without end. Give a prior "
            'that does, such as prior=priors.Normal(3.0), which is what prior="auto" is here.',
            ApproximationWarning,
            stacklevel=6,
        )
        return
    density = CoordinateDensity(target, coordinates)
    middle, directions = _directions(target, coordinates, position)
    linear = coordinates.dense and "eta" in target.problem.objective.offers
    values = []
    for distance in STRIDES[:2] if linear else STRIDES:  # log p of a linear model is concave: there are no valleys
        moves = distance * torch.cat([directions, -directions])
        values.append(density(middle + moves))
    falls = torch.stack(values).diff(dim=0).amin(0)  # NaN, where both are −∞, is not above anything
    endless = (falls > -math.log(10)) & (values[-1] > density(middle.unsqueeze(0)) - REACH)
    if not bool(endless.any()):
        return
    move = directions[int(endless.nonzero()[0]) % len(directions)]
    name = _name(target, coordinates, move)
    if linear and name != "shared":
        raise TrainingError(
            f"With {prior!r} there is no posterior to draw from: along some direction of {name} the data stay as "
            "probable however large the weights become (as where a plane separates the classes), and the prior does "
            "not hold them. Give the weights one that does, such as prior=priors.Normal(1.0)."
        )
    warnings.warn(
        f"The posterior is improper: the data stay as probable however large {name} becomes, and {prior!r} does not "
        "hold it, so chains wander off without end. Give every parameter a prior, such as "
        "prior=priors.Normal(1.0, biases=priors.Normal(1.0)).",
        ApproximationWarning,
        stacklevel=6,
    )


def _directions(target: LogPosterior, coordinates: Coordinates, position: Tensor) -> tuple[Tensor, Tensor]:
    """The middle (size,) and unit moves from it (k, size): standard deviations, or sizes of weights in a network."""
    size = coordinates.size
    if coordinates.dense:
        return position.new_zeros(size), torch.eye(size, dtype=position.dtype, device=position.device)
    middle = position[0]
    chosen = _some_of_each(target.parameters.sizes).to(position.device)
    moves = position.new_zeros(len(chosen), size)
    moves[torch.arange(len(chosen)), chosen] = 30 * (1 + middle[chosen].abs())
    return middle, moves


def _some_of_each(sizes: list[int]) -> Tensor:
    """Evenly spaced indices into each of several parameters that lie one after another."""
    count, first, indices = max(1, LOOKED_AT // len(sizes)), 0, []
    for size in sizes:
        indices.append(first + torch.linspace(0, size - 1, min(size, count)).round().long())
        first += size
    return torch.cat(indices)


def _name(target: LogPosterior, coordinates: Coordinates, move: Tensor) -> str:
    """The parameter that a move changes most."""
    change = coordinates.spread(move)
    sizes = {name: float(part.abs().max()) for name, part in target.named(change).items() if part.numel()}
    return max(sizes, key=lambda name: sizes[name])
