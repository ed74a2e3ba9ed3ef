"""The scale that a series is modelled on: logarithm or square root, and units of each series.

z = (g(y) − location) / scale,    g(y) = y, log y, or sign(y) √|y|
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch import distributions as td

from ...core.errors import DataError, SpecError
from ...probability.quantiles import cdf, quantile

__all__ = ["TRANSFORMS", "Mapped", "Scale", "choose_transform", "mapped", "remade"]

TRANSFORMS = ("none", "log", "sqrt", "log1p")
NODES = 512
"""Points of the quadrature for moments that have no closed form."""
SMALLEST = 1e-3
"""A series that falls below this fraction of its median is too close to 0 for a logarithm."""


class Scale(NamedTuple):
    """A transform by name and the units after it; location and scale broadcast against values."""

    transform: str
    location: Any = 0.0
    scale: Any = 1.0

    def forward(self, values: Any) -> Any:
        """z of y."""
        return (bend(self.transform, values) - self.location) / self.scale

    def log_slope(self, values: np.ndarray) -> np.ndarray:
        """log dz/dy: what a density of z gains as one of y."""
        if self.transform == "log":
            slope = -np.log(values)
        elif self.transform == "log1p":
            slope = -np.log1p(values)
        elif self.transform == "sqrt":
            slope = -np.log(2) - 0.5 * np.log(np.maximum(np.abs(values), 1e-300))
        else:
            slope = np.zeros_like(values)
        return np.asarray(slope - np.log(self.scale))


def bend(transform: str, values: Any) -> Any:
    """g(y), of an array or a tensor.

    >>> bend("sqrt", np.array([4.0, -9.0]))
    array([ 2., -3.])
    """
    lib: Any = torch if isinstance(values, Tensor) else np
    if transform == "log":
        return lib.log(values)
    if transform == "log1p":
        return lib.log1p(values)
    return lib.sign(values) * lib.sqrt(lib.abs(values)) if transform == "sqrt" else values


def unbend(transform: str, values: Any) -> Any:
    """g⁻¹(z), of an array or a tensor."""
    lib: Any = torch if isinstance(values, Tensor) else np
    if transform == "log":
        return lib.exp(values)
    if transform == "log1p":
        return lib.expm1(values)
    return lib.sign(values) * values**2 if transform == "sqrt" else values


def choose_transform(asked: Any, values: np.ndarray, real: bool) -> str:
    """The transform in force: "auto" takes logarithms of what is above 0, roots of what is not negative.

    A likelihood of counts or of positive numbers (not `real`) has its own link: then only the past is transformed.

    >>> choose_transform("auto", np.array([1.0, 2.0]), True), choose_transform("auto", np.array([-1.0, 2.0]), True)
    ('log', 'none')
    """
    if not isinstance(asked, str) or asked not in ("auto", *TRANSFORMS):
        raise SpecError(f'transform={asked!r}: transform must be "auto", "none", "log", "sqrt" or "log1p".')
    seen = values[~np.isnan(values)]
    low = float(seen.min())
    if asked == "auto":
        if not real:
            return "log1p" if low >= 0 else "none"
        if low > 0 and low >= SMALLEST * float(np.median(seen)):
            return "log"
        return "sqrt" if low >= 0 and float(seen.max()) > 0 else "none"
    needs = {"log": low > 0, "log1p": low > -1}
    if not needs.get(asked, True):
        raise DataError(
            f'transform="{asked}" needs values above {0 if asked == "log" else -1}; the series has {low:g}.'
        )
    return asked


# --- distributions ----------------------------------------------------------------------------------------------------
class Mapped(td.Distribution):
    """The distribution of g⁻¹(location + scale z), where z has a known one.

    >>> Mapped(td.Normal(torch.tensor(1.0).double(), 0.1), "sqrt").mean     # E z² = 1 + 0.1²
    tensor(1.0100, dtype=torch.float64)
    """

    arg_constraints: dict[str, Any] = {}  # noqa: RUF012 (torch's own name)

    def __init__(self, base: td.Distribution, transform: str) -> None:
        self.base, self.transform = base, transform
        super().__init__(base.batch_shape, base.event_shape, validate_args=False)

    @property
    def support(self) -> Any:
        return td.constraints.positive if self.transform == "log" else td.constraints.real

    def sample(self, sample_shape: Any = torch.Size()) -> Tensor:  # noqa: B008
        return unbend(self.transform, self.base.sample(sample_shape))  # type: ignore[no-any-return]

    def log_prob(self, value: Tensor) -> Tensor:
        value = torch.as_tensor(value)
        slope = Scale(self.transform).log_slope(value.double().numpy())
        return self.base.log_prob(bend(self.transform, value)) + torch.from_numpy(np.asarray(slope))

    def cdf(self, value: Tensor) -> Tensor:
        return cdf(self.base, bend(self.transform, value))

    def icdf(self, value: Tensor) -> Tensor:
        return unbend(self.transform, quantile(self.base, value))  # type: ignore[no-any-return]

    @property
    def mean(self) -> Tensor:
        closed = self._moments()
        return self._values().mean(0) if closed is None else closed[0]

    @property
    def variance(self) -> Tensor:
        closed = self._moments()
        return self._values().var(0, correction=0) if closed is None else closed[1]

    def _moments(self) -> tuple[Tensor, Tensor] | None:
        """Mean and variance where they have a closed form: of a normal z.

        E sign(z) z² = (μ² + σ²)(2Φ(μ/σ) − 1) + 2μσφ(μ/σ),   E z⁴ = μ⁴ + 6μ²σ² + 3σ⁴
        """
        if type(self.base) is not td.Normal or self.transform not in ("sqrt", "log1p"):
            return None
        mean, scale = self.base.loc, self.base.scale
        if self.transform == "log1p":
            whole = td.LogNormal(mean, scale, validate_args=False)
            return whole.mean - 1, whole.variance
        ratio, square = mean / scale, mean**2 + scale**2
        density = (-0.5 * ratio**2).exp() / (2 * torch.pi) ** 0.5
        first = square * (2 * torch.special.ndtr(ratio) - 1) + 2 * mean * scale * density
        return first, mean**4 + 6 * mean**2 * scale**2 + 3 * scale**4 - first**2

    def _values(self) -> Tensor:
        """Quantiles at the middles of equal parts of the probability."""
        p = (torch.arange(NODES, dtype=torch.float64) + 0.5) / NODES
        return self.icdf(p.reshape(-1, *[1] * len(self.batch_shape)).expand(NODES, *self.batch_shape))


def mapped(distribution: td.Distribution, scale: Scale) -> td.Distribution:
    """The distribution of y where z has this one; location and scale are tensors of its batch shape, or broadcast.

    >>> z = td.Normal(torch.zeros(2), torch.ones(2))
    >>> mapped(z, Scale("none", torch.tensor(3.0), torch.tensor(2.0))).loc
    tensor([3., 3.])
    """
    if isinstance(distribution, td.MixtureSameFamily):
        wide = Scale(scale.transform, *(torch.as_tensor(part).unsqueeze(-1) for part in scale[1:]))
        parts = mapped(distribution.component_distribution, wide)
        return td.MixtureSameFamily(distribution.mixture_distribution, parts, validate_args=False)
    moved = _moved(distribution, *(torch.as_tensor(part, dtype=torch.float64) for part in scale[1:]))
    if scale.transform == "none":
        return moved
    if scale.transform == "log" and type(moved) is td.Normal:
        return td.LogNormal(moved.loc, moved.scale, validate_args=False)
    return Mapped(moved, scale.transform)


def _moved(distribution: Any, location: Tensor, scale: Tensor) -> Any:
    """location + scale z, for families that have both."""
    if not {"loc", "scale"} <= set(distribution.arg_constraints) or isinstance(distribution, td.LogNormal):
        raise SpecError(f"A {type(distribution).__name__} has no units; transform and units need a real likelihood.")
    more = {"df": distribution.df} if "df" in distribution.arg_constraints else {}
    loc, width = location + scale * distribution.loc, scale * distribution.scale
    return type(distribution)(**more, loc=loc, scale=width.expand_as(loc), validate_args=False)


def remade(distribution: Any, change: Any) -> Any:
    """The same family with each parameter changed, once it has the full batch shape.

    >>> remade(td.Normal(torch.zeros(3), 1.0), lambda value: value[:2]).scale
    tensor([1., 1.])
    """
    if isinstance(distribution, td.MixtureSameFamily):
        mixing = distribution.mixture_distribution
        logits = change(mixing.logits.expand(*distribution.batch_shape, mixing.logits.shape[-1]))
        parts = remade(distribution.component_distribution, change)
        return td.MixtureSameFamily(td.Categorical(logits=logits, validate_args=False), parts, validate_args=False)
    if isinstance(distribution, Mapped):
        return Mapped(remade(distribution.base, change), distribution.transform)
    names = list(distribution.arg_constraints)
    if {"probs", "logits"} <= set(names):
        names.remove("probs" if "logits" in distribution.__dict__ else "logits")
    values = {name: getattr(distribution, name).expand(distribution.batch_shape) for name in names}
    return type(distribution)(**{name: change(value) for name, value in values.items()}, validate_args=False)
