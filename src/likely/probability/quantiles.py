"""Distribution functions and quantiles of every univariate distribution that a likelihood gives, and of their mixtures.

    cdf(d, y) = P(Y ≤ y),   quantile(d, p) = the smallest y with P(Y ≤ y) ≥ p

torch knows some of them; SciPy's special functions do the rest, on the CPU, in float64 and without gradients. Vectors
(`MultivariateNormal`, `Joint`) answer coordinate by coordinate, for their marginals.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import Any

import torch
from torch import Tensor
from torch import distributions as td

from ..core.errors import DataError
from .blocks import Blocks
from .joint import Joint

__all__ = ["cdf", "quantile"]


def cdf(distribution: td.Distribution, value: Tensor | float) -> Tensor:
    """P(Y ≤ value); the value broadcasts against batch shape + event shape.

    >>> cdf(td.Poisson(torch.tensor(1.0)), torch.tensor([0.0, 1.0]))
    tensor([0.3679, 0.7358])
    """
    like = distribution.mean
    return _cdf(distribution, torch.as_tensor(value, dtype=torch.float64, device=like.device)).to(like.dtype)


def quantile(distribution: td.Distribution, probability: Tensor | float) -> Tensor:
    """The smallest y with P(Y ≤ y) ≥ probability, which broadcasts against batch shape + event shape.

    >>> quantile(td.Gamma(torch.tensor(1.0), torch.tensor(1.0)), 0.5)
    tensor(0.6931)
    >>> quantile(td.Poisson(torch.tensor([1.0, 100.0])), 0.5)
    tensor([  1., 100.])
    """
    like = distribution.mean
    given = torch.as_tensor(probability, dtype=torch.float64, device=like.device)
    outside = ~((given >= 0) & (given <= 1))
    if bool(outside.any()):
        raise DataError(
            f"probability has the value {given[outside].flatten()[0].item():g}; it must lie between 0 and 1."
        )
    p = given.expand(torch.broadcast_shapes(given.shape, like.shape))
    # A probability that was rounded in its own precision must still find the value that it was computed from.
    rounded = torch.is_tensor(probability) and probability.is_floating_point()
    slack = torch.finfo(probability.dtype if rounded else torch.float64).eps  # type: ignore[union-attr]
    return _quantile(distribution, p, 4 * slack, torch.finfo(like.dtype).eps).to(like.dtype)


# --- the distribution function, in float64 --------------------------------------------------------------------------
@singledispatch
def _cdf(distribution: td.Distribution, value: Tensor) -> Tensor:
    return distribution.cdf(value)


@_cdf.register
def _(distribution: td.Normal, value: Tensor) -> Tensor:
    return torch.special.ndtr((value - distribution.loc) / distribution.scale)


@_cdf.register
def _(distribution: td.Laplace, value: Tensor) -> Tensor:
    z = (value - distribution.loc) / distribution.scale
    tail = 0.5 * (-z.abs()).exp()
    return torch.where(z < 0, tail, 1 - tail)


@_cdf.register
def _(distribution: td.Exponential, value: Tensor) -> Tensor:
    return -torch.expm1(-distribution.rate * value.clamp_min(0))


@_cdf.register
def _(distribution: td.StudentT, value: Tensor) -> Tensor:
    return _special("stdtr", distribution.df, (value - distribution.loc) / distribution.scale)


@_cdf.register
def _(distribution: td.Gamma, value: Tensor) -> Tensor:
    return _special("gammainc", distribution.concentration, distribution.rate * value.clamp_min(0))


@_cdf.register
def _(distribution: td.Beta, value: Tensor) -> Tensor:
    return _special("betainc", distribution.concentration1, distribution.concentration0, value.clamp(0, 1))


@_cdf.register
def _(distribution: td.Poisson, value: Tensor) -> Tensor:
    count = value.floor()
    return torch.where(count < 0, 0.0, _special("gammaincc", count.clamp_min(0) + 1, distribution.rate))


@_cdf.register
def _(distribution: td.NegativeBinomial, value: Tensor) -> Tensor:
    count = value.floor()
    inside = _special("betaincc", count.clamp_min(0) + 1, distribution.total_count, distribution.probs)
    return torch.where(count < 0, 0.0, inside)


@_cdf.register
def _(distribution: td.Binomial, value: Tensor) -> Tensor:
    count, total = value.floor(), distribution.total_count
    below = torch.minimum(count.clamp_min(0), total - 1)  # the function is not defined at the total itself
    inside = _special("betaincc", below + 1, total - below, distribution.probs)
    return torch.where(count < 0, 0.0, torch.where(count >= total, 1.0, inside))


@_cdf.register
def _(distribution: td.Bernoulli, value: Tensor) -> Tensor:
    return torch.where(value < 0, 0.0, torch.where(value < 1, 1 - distribution.probs.double(), 1.0))


@_cdf.register
def _(distribution: td.Categorical, value: Tensor) -> Tensor:
    probs = distribution.probs.double()
    labels = torch.arange(probs.shape[-1], device=probs.device)
    return torch.where(labels <= value.unsqueeze(-1), probs, 0.0).sum(-1).clamp_max(1)


@_cdf.register
def _(distribution: td.MultivariateNormal, value: Tensor) -> Tensor:
    return _cdf(_coordinates(distribution), value)


@_cdf.register
def _(distribution: td.Independent, value: Tensor) -> Tensor:
    return _cdf(distribution.base_dist, value)


@_cdf.register
def _(distribution: Joint, value: Tensor) -> Tensor:
    value = value.expand(torch.broadcast_shapes(value.shape, distribution.event_shape))
    parts = zip(distribution.marginals.values(), distribution.columns(value), strict=True)
    return distribution.beside([_cdf(part, own) for part, own in parts])


@_cdf.register
def _(distribution: td.MixtureSameFamily, value: Tensor) -> Tensor:
    event = len(distribution.event_shape)
    value = value.expand(torch.broadcast_shapes(value.shape, distribution.event_shape))
    weights = distribution.mixture_distribution.probs
    weights = weights.reshape(weights.shape + (1,) * event)
    return (weights * _cdf(distribution.component_distribution, value.unsqueeze(-1 - event))).sum(-1 - event)


@_cdf.register
def _(distribution: Blocks, value: Tensor) -> Tensor:
    return distribution.ask(_cdf, value)


# --- quantiles, in float64 ------------------------------------------------------------------------------------------
# p has the full shape of the answer; `slack` is the rounding of p, `precision` that of the answer.
@singledispatch
def _quantile(distribution: td.Distribution, p: Tensor, slack: float, precision: float) -> Tensor:
    return distribution.icdf(p)


@_quantile.register
def _(distribution: td.Normal, p: Tensor, slack: float, precision: float) -> Tensor:
    return distribution.loc + distribution.scale * torch.special.ndtri(p)


@_quantile.register
def _(distribution: td.Laplace, p: Tensor, slack: float, precision: float) -> Tensor:
    return distribution.loc + distribution.scale * torch.where(p < 0.5, (2 * p).log(), -(2 * (1 - p)).log())


@_quantile.register
def _(distribution: td.StudentT, p: Tensor, slack: float, precision: float) -> Tensor:
    z = torch.where(p > 0, _special("stdtrit", distribution.df, p), -torch.inf)
    return distribution.loc + distribution.scale * z


@_quantile.register
def _(distribution: td.Gamma, p: Tensor, slack: float, precision: float) -> Tensor:
    return _special("gammaincinv", distribution.concentration, p) / distribution.rate


@_quantile.register
def _(distribution: td.Beta, p: Tensor, slack: float, precision: float) -> Tensor:
    return _special("betaincinv", distribution.concentration1, distribution.concentration0, p)


@_quantile.register(td.Poisson)
@_quantile.register(td.NegativeBinomial)
@_quantile.register(td.Binomial)
def _(distribution: Any, p: Tensor, slack: float, precision: float) -> Tensor:
    end = distribution.total_count if isinstance(distribution, td.Binomial) else torch.inf
    needed = p * (1 - slack)
    high = (distribution.mean + 20 * distribution.stddev + 20).double().ceil().clamp_max(end).expand_as(p)
    for _ in range(100):  # heavy tails may reach further
        short = (_cdf(distribution, high) < needed) & (p < 1)
        if not bool(short.any()):
            break
        high = torch.where(short, 2 * high + 1, high)
    counts = _search(lambda k: _cdf(distribution, k), torch.zeros_like(p), high, needed, torch.ones_like(p) > 0, 1.0)
    return torch.where(p < 1, counts, end)


@_quantile.register
def _(distribution: td.Bernoulli, p: Tensor, slack: float, precision: float) -> Tensor:
    return (p * (1 - slack) > 1 - distribution.probs.double()).double()


@_quantile.register
def _(distribution: td.Categorical, p: Tensor, slack: float, precision: float) -> Tensor:
    below = distribution.probs.double().cumsum(-1)
    return (below < (p * (1 - slack)).unsqueeze(-1)).sum(-1).clamp_max(below.shape[-1] - 1).double()


@_quantile.register
def _(distribution: td.MultivariateNormal, p: Tensor, slack: float, precision: float) -> Tensor:
    return _quantile(_coordinates(distribution), p, slack, precision)


@_quantile.register
def _(distribution: td.Independent, p: Tensor, slack: float, precision: float) -> Tensor:
    return _quantile(distribution.base_dist, p, slack, precision)


@_quantile.register
def _(distribution: Joint, p: Tensor, slack: float, precision: float) -> Tensor:
    parts = zip(distribution.marginals.values(), distribution.columns(p), strict=True)
    return distribution.beside([_quantile(part, own, slack, precision) for part, own in parts])


@_quantile.register
def _(distribution: td.MixtureSameFamily, p: Tensor, slack: float, precision: float) -> Tensor:
    event = len(distribution.event_shape)
    component = distribution.component_distribution
    axis = -1 - event
    wide = p.unsqueeze(axis)
    shape = torch.broadcast_shapes(wide.shape, component.batch_shape + component.event_shape)
    ends = _quantile(component, wide.expand(shape), slack, precision)
    low, high = ends.amin(axis), ends.amax(axis)
    whole = _whole(component).expand_as(p)
    needed = torch.where(whole, p * (1 - slack), p)
    quantiles = _search(lambda y: _cdf(distribution, y), low, high, needed, whole, precision)
    return torch.where(p <= 0, low, torch.where(p >= 1, high, quantiles))


@_quantile.register
def _(distribution: Blocks, p: Tensor, slack: float, precision: float) -> Tensor:
    return distribution.ask(lambda part, own: _quantile(part, own, slack, precision), p)


def _search(
    function: Callable[[Tensor], Tensor], low: Tensor, high: Tensor, p: Tensor, whole: Tensor, precision: float
) -> Tensor:
    """The smallest y in [low, high] with function(y) ≥ p, by bisection; an integer where `whole` says so."""
    low, high = low.nan_to_num(), high.nan_to_num()
    low = torch.where(whole, low - 1, low)
    for _ in range(1100):  # enough for any two floating numbers
        width = torch.where(whole, 1.0, 0.25 * precision * torch.maximum(low.abs(), high.abs()))
        middle = 0.5 * low + 0.5 * high
        middle = torch.where(whole, middle.floor(), middle)
        done = (high - low <= width) | (middle <= low) | (middle >= high)
        if bool(done.all()):
            break
        reached = function(middle) >= p
        high = torch.where(reached & ~done, middle, high)
        low = torch.where(reached | done, low, middle)
    return torch.where(whole, high, 0.5 * low + 0.5 * high)


def _special(name: str, *arguments: Tensor) -> Tensor:
    """A function of `scipy.special` of tensors, in float64."""
    from scipy import special

    arrays = [argument.detach().double().cpu().numpy() for argument in arguments]
    return torch.as_tensor(getattr(special, name)(*arrays), dtype=torch.float64, device=arguments[0].device)


def _coordinates(distribution: td.MultivariateNormal) -> td.Normal:
    return td.Normal(distribution.mean, distribution.stddev, validate_args=False)


def _whole(distribution: td.Distribution) -> Tensor:
    """Which coordinates of an event are integers."""
    device = distribution.mean.device
    if isinstance(distribution, Joint):
        parts = zip(distribution.marginals.values(), distribution.widths, strict=True)
        return torch.cat([_whole(part).expand(width) for part, width in parts])
    if isinstance(distribution, td.MixtureSameFamily):
        return _whole(distribution.component_distribution)
    return torch.tensor(getattr(distribution.support, "is_discrete", False), device=device)
