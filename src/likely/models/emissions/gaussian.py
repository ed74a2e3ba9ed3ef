"""Gaussian components whose columns vary together.

    log p(x | k) = −½‖z‖² + log|W| − (d/2) log 2π,      z = (x − μₖ) Wₖ,   Σₖ⁻¹ = Wₖ Wₖᵀ

Sums are taken of z and zzᵀ, that is, around each component's own mean and in its own units: no digits are lost, however
far apart the components lie. No eigenvalue of Σₖ, in units of the columns' variances, is less than `floor`; clamping
the eigenvalues of the weighted covariance is the exact maximum under this constraint, so that EM never falls.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from ...core.declared import AMOUNT, COUNT, COVARIANCE, POSITIVE, Array, Arrays
from ...core.errors import DataError, ModelFileError
from ...likelihoods.special import LOG_2PI
from .base import Emission, Params
from .gaussian_density import Covariance, Units, from_free, smooth_log_prob, to_free
from .gaussian_floor import at_least
from .gaussian_missing import accumulate_missing, expected_missing, has_missing, log_prob_missing

__all__ = ["GaussianEmission"]

SHAPES = {"full": "K D D", "tied": "1 D D", "diag": "K D", "spherical": "K 1"}
"""The axes of the covariances of K components of D columns."""

MOST_COLUMNS = 10**6
"""That a file may ask for."""

MOST = 2**19
"""Numbers z that are computed at once."""


class GaussianEmission(Emission):
    """GaussianEmission(dim, covariance="full", floor=1e-6): "full", "tied" (one Σ for all), "diag" or "spherical".

    Missing values are marginalised exactly. Parameters are `mean` (S, K, d) and `covariance`: (S, K, d, d) if full,
    (S, 1, d, d) if tied, (S, K, d) if diagonal, (S, K, 1) if spherical; what follows from them comes with `complete`.

    >>> x = torch.tensor([[0.0], [2.0], [9.0], [13.0]])
    >>> gaussian = GaussianEmission(1)
    >>> gaussian.bind(x, None)
    >>> weight = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]], dtype=torch.float64).unsqueeze(1)
    >>> totals = gaussian.zeros(1, 2)
    >>> gaussian.accumulate(totals, None, x, weight, slice(0, 4))
    >>> fitted = gaussian.maximise(None, totals)
    >>> fitted["mean"].ravel().tolist(), fitted["covariance"].ravel().round(decimals=9).tolist()
    ([1.0, 11.0], [1.0, 4.0])
    """

    def __init__(self, dim: int, covariance: Covariance = "full", floor: float = 1e-6) -> None:
        self.dim, self.covariance, self.floor = dim, covariance, floor
        self.centre = torch.zeros(dim, dtype=torch.float64)
        self.variance = torch.ones(dim, dtype=torch.float64)
        self._clear()

    def __copy__(self) -> GaussianEmission:
        """One that shares no memory with this one, for another thread."""
        other = GaussianEmission.__new__(GaussianEmission)
        other.__dict__ |= self.__dict__
        other._clear()
        return other

    def _clear(self) -> None:
        self._recent: tuple[Tensor, Params, Tensor] | None = None
        self._maps: tuple[Params, Tensor, Tensor, Tensor] | None = None
        self._memory = [torch.empty(0, dtype=torch.float64)] * 3

    @property
    def matrix(self) -> bool:
        """Whether columns vary together within a component."""
        return self.covariance in ("full", "tied")

    # --- data ---------------------------------------------------------------------------------------------------
    def check(self, x: Tensor, name: str = "X") -> None:
        if x.shape[1] != self.dim:
            raise DataError(f"{name} has {x.shape[1]} columns; these Gaussians have {self.dim}.")

    def bind(self, x: Tensor, weight: Tensor | None) -> None:
        """The means and variances of the columns, by two passes."""
        self.centre = _column_means(x, weight, torch.zeros(self.dim, dtype=torch.float64), 1)
        self.centre = self.centre + _column_means(x, weight, self.centre, 1)
        variance = _column_means(x, weight, self.centre, 2)
        if not bool(torch.isfinite(variance).all()):
            column = int((~torch.isfinite(variance)).nonzero()[0])
            raise DataError(f"column {column} of X is too large for float64: its variance overflows; rescale it.")
        size = self.centre.abs()
        constant = variance <= (1e-12 * size).square()  # rounding is all there is
        self.variance = torch.where(constant, torch.where(size > 0, size.square(), 1.0), variance)

    # --- the distribution ---------------------------------------------------------------------------------------
    def log_prob(self, params: Params, x: Tensor) -> Tensor:
        shape = params["mean"].shape[:2]
        size = max(MOST // (shape.numel() * self.dim), 256)
        if len(x) > size:
            return torch.cat([self.log_prob(params, rows) for rows in x.split(size)])
        missing = has_missing(x)
        if self.matrix and missing:
            return log_prob_missing(params, x)
        z = self._whitened(params, x)
        self._recent = (x, params, z)
        squares = torch.mul(z, z, out=self._room(1, z.shape)).sum(-1).mul_(-0.5).T
        constant = self._prepared(params)[2]  # (S·K, d): each column's part of log|W| − (d/2) log 2π
        known = (~x.isnan()).double() @ constant.T if missing else constant.sum(-1)
        return (squares + known).unflatten(-1, shape)

    # --- as a density -------------------------------------------------------------------------------------------
    def to_free(self, params: Params) -> Params:
        return to_free(params, self._units())

    def from_free(self, free: Params) -> Params:
        return from_free(free, self._units())

    def smooth_log_prob(self, params: Params, x: Tensor) -> Tensor:
        return smooth_log_prob(params, x, matrix=self.matrix)

    def finished(self, params: Params) -> Params:
        own = {name: params[name].unsqueeze(0) for name in ("mean", "covariance")}
        return {**params, **{name: value[0] for name, value in self.complete(own).items()}}

    def sample(self, params: Params, component: Tensor) -> Tensor:
        noise = torch.randn(len(component), self.dim, dtype=torch.float64)
        if not self.matrix:
            return params["mean"][component] + noise * params["covariance"][component].sqrt()
        factor = torch.linalg.cholesky(params["covariance"])
        factor = factor.expand(len(params["mean"]), -1, -1)
        moved = torch.empty_like(noise)
        for k in range(len(factor)):  # a factor for each row would be n × d × d
            own = component == k
            moved[own] = params["mean"][k] + noise[own] @ factor[k].T
        return moved

    def expected(self, params: Params, x: Tensor, responsibility: Tensor) -> Tensor:
        if not self.matrix:
            return responsibility @ params["mean"]
        return expected_missing(params, x, responsibility)

    def filled(self, params: Params, x: Tensor, component: Tensor) -> Tensor:
        """A draw of the whole row, moved by what its seen part differs from x (Matheron's rule)."""
        whole, missing = self.sample(params, component), x.isnan()
        own = torch.nn.functional.one_hot(component, len(params["mean"])).double()
        unseen = torch.where(missing, torch.nan, whole)
        moved = whole + self.expected(params, x, own) - self.expected(params, unseen, own)
        return torch.where(missing, moved, x.double())

    # --- sums and estimates -------------------------------------------------------------------------------------
    def zeros(self, starts: int, components: int) -> Params:
        one = {"full": (components, self.dim, self.dim), "tied": (1, self.dim, self.dim)}
        shapes = {
            "count": (components, 1 if self.matrix else self.dim),
            "first": (components, self.dim),
            "second": one.get(self.covariance, (components, self.dim)),
        }
        return {name: torch.zeros(starts, *shape, dtype=torch.float64) for name, shape in shapes.items()}

    def accumulate(self, totals: Params, params: Params | None, x: Tensor, weight: Tensor, rows: slice) -> None:
        params = self._background(weight.shape[1], weight.shape[2]) if params is None else params
        missing = has_missing(x)
        if self.matrix and missing:
            accumulate_missing(totals, params, x, weight)
            return
        z, self._recent = self._whitened(params, x), None
        shape = weight.shape[1:]
        flat = weight.flatten(1).T.contiguous()  # (S·K, n)
        weighted = torch.mul(z, flat.unsqueeze(-1), out=self._room(1, z.shape))
        totals["first"] += (flat.unsqueeze(1) @ z).squeeze(1).unflatten(0, shape)
        if not self.matrix:
            seen = (~x.isnan()).double() if missing else torch.ones(len(x), self.dim, dtype=torch.float64)
            totals["count"] += (flat @ seen).unflatten(0, shape)
            totals["second"] += weighted.mul_(z).sum(1).unflatten(0, shape)
            return
        totals["count"] += flat.sum(-1).unflatten(0, shape).unsqueeze(-1)
        if self.covariance == "full":
            totals["second"].flatten(0, 1).baddbmm_(weighted.mT, z)
        else:
            left, right = (factor.unflatten(0, shape).flatten(1, 2) for factor in (weighted, z))  # (S, K·n, d)
            totals["second"] += (left.mT @ right).unsqueeze(1)

    def maximise(self, params: Params | None, totals: Params) -> Params:
        count, first, second = totals["count"], totals["first"], totals["second"]
        params = self._background(*first.shape[:2]) if params is None else params
        alone = count <= 0
        shift = first / torch.where(alone, 1.0, count)
        mean = torch.where(alone, self.centre, params["mean"] + self._unwhitened(params, shift))
        if self.covariance == "spherical":
            rest = (second - count * shift.square()).sum(-1, keepdim=True) * params["covariance"]
            every = count.sum(-1, keepdim=True)
            average = self.variance.mean()
            estimate = torch.where(every <= 0, average, rest / torch.where(every <= 0, 1.0, every))
            least = self.floor * average
        elif self.covariance == "diag":
            rest = (second - count * shift.square()) * params["covariance"]
            estimate = torch.where(alone, self.variance, rest / torch.where(alone, 1.0, count))
            least = self.floor * self.variance
        else:
            return self._matrix(params, mean, count, shift, second)
        covariance = estimate.maximum(least).clamp_min(1e-300)
        return self.complete({"mean": mean, "covariance": covariance, "floored": (estimate < least).any(-1)})

    def _matrix(self, params: Params, mean: Tensor, count: Tensor, shift: Tensor, second: Tensor) -> Params:
        between = (count * shift).unsqueeze(-1) * shift.unsqueeze(-2)
        if self.covariance == "tied":
            count, between = count.sum(1, keepdim=True), between.sum(1, keepdim=True)
        alone = (count <= 0).unsqueeze(-1)
        scatter = (second - between) / torch.where(alone, 1.0, count.unsqueeze(-1))
        factor = torch.linalg.cholesky(params["covariance"])
        covariance = torch.where(alone, torch.diag(self.variance), factor @ scatter @ factor.mT)
        unit = self.variance.sqrt()
        unit = unit.unsqueeze(-1) * unit
        held, floored = at_least(0.5 * (covariance + covariance.mT) / unit, self.floor)
        return self.complete({"mean": mean, "covariance": held * unit, "floored": floored})

    def complete(self, params: Params) -> Params:
        """Parameters with W, which follows from the covariance; those in `params` keep their names."""
        floored = params.get("floored", torch.zeros(params["covariance"].shape[:2], dtype=torch.bool))
        if not self.matrix:
            return {**params, "whiten": params["covariance"].rsqrt(), "floored": floored}
        factor = torch.linalg.cholesky(params["covariance"])
        eye = torch.eye(self.dim, dtype=torch.float64).expand_as(factor)
        whiten = torch.linalg.solve_triangular(factor, eye, upper=False).mT.contiguous()
        return {**params, "whiten": whiten, "floored": floored}

    def free(self, components: int) -> int:
        triangle = self.dim * (self.dim + 1) // 2
        spread = {"full": components * triangle, "tied": triangle, "diag": components * self.dim}
        return components * self.dim + spread.get(self.covariance, components)

    # --- files --------------------------------------------------------------------------------------------------
    def to_json(self) -> dict[str, Any]:
        return {"dim": self.dim, "covariance": self.covariance, "floor": self.floor}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> GaussianEmission:
        """The inverse of `to_json`."""
        dim, covariance, floor = data["dim"], data["covariance"], data["floor"]
        if not COUNT.holds(dim) or not 1 <= dim <= MOST_COLUMNS or covariance not in SHAPES or not AMOUNT.holds(floor):
            raise ModelFileError(f"The file has Gaussians of {dim!r} columns, {covariance!r}, with floor={floor!r}.")
        return GaussianEmission(dim, covariance, floor)

    @property
    def width(self) -> int:
        return self.dim

    def arrays(self) -> Arrays:
        shape = SHAPES[self.covariance]
        return {
            "mean": Array("K D"),
            "covariance": Array(shape, COVARIANCE if self.matrix else POSITIVE),
            "whiten": Array(shape),
            "floored": Array("K | 1", dtype="bool"),
        }

    def check_params(self, params: Params, components: int, columns: int) -> None:
        super().check_params(params, components, columns)
        whiten = self.complete({name: params[name] for name in ("mean", "covariance")})["whiten"]
        if not torch.allclose(whiten, params["whiten"], rtol=1e-6):
            raise ModelFileError("The file does not fit its own specs: whiten does not follow from covariance.")

    # --- helpers ------------------------------------------------------------------------------------------------
    def _whitened(self, params: Params, x: Tensor) -> Tensor:
        """z = (x − μ) W of each row and component, (S·K, n, d); 0 where a value is missing (diagonal Σ only).

        It stays valid until the next call: all blocks share one piece of memory.
        """
        if self._recent is not None and self._recent[0] is x and self._recent[1] is params:
            return self._recent[2]
        middle, affine, _ = self._prepared(params)
        z = self._room(0, (len(affine), len(x), self.dim))
        if self.matrix:
            rows = self._room(2, (len(x), self.dim + 1))
            torch.sub(x, middle, out=rows[:, :-1])
            rows[:, -1] = 1.0
            return torch.bmm(rows.expand(len(affine), -1, -1), affine, out=z)
        torch.sub(x, affine[:, :1], out=z).mul_(affine[:, 1:])
        return z.nan_to_num_(nan=0.0) if has_missing(x) else z

    def _prepared(self, params: Params) -> tuple[Tensor, Tensor, Tensor]:
        """What all blocks of an E-step need: a point between the means, the maps from rows to z, and log|W|."""
        if self._maps is not None and self._maps[0] is params:
            return self._maps[1:]
        mean, shape = params["mean"].flatten(0, 1), params["mean"].shape
        middle = mean.mean(0)  # products lose fewer digits when they are taken from here
        if self.matrix:
            whiten = params["whiten"].expand(*shape, self.dim).flatten(0, 1)
            affine = torch.cat([whiten, (middle - mean).unsqueeze(1) @ whiten], 1)  # (S·K, d + 1, d)
            log_scale = whiten.diagonal(dim1=-2, dim2=-1).log()
        else:
            whiten = params["whiten"].expand(shape).flatten(0, 1)
            affine = torch.stack([mean, whiten], 1)  # (S·K, 2, d)
            log_scale = whiten.log()
        self._maps = (params, middle, affine, log_scale - 0.5 * LOG_2PI)
        return self._maps[1:]

    def _room(self, which: int, shape: Sequence[int]) -> Tensor:
        """Memory that is used again and again: fresh pages would cost as much as the arithmetic."""
        size = math.prod(shape)
        if len(self._memory[which]) < size:
            self._memory[which] = torch.empty(size, dtype=torch.float64)
        return self._memory[which][:size].view(*shape)

    def _units(self) -> Units:
        return Units(self.centre, self.variance, self.floor, self.covariance)

    def _unwhitened(self, params: Params, shift: Tensor) -> Tensor:
        if not self.matrix:
            return shift * params["covariance"].sqrt()
        return (torch.linalg.cholesky(params["covariance"]) @ shift.unsqueeze(-1)).squeeze(-1)

    def _background(self, starts: int, components: int) -> Params:
        """All components alike: the columns' means and variances."""
        mean = self.centre.expand(starts, components, self.dim)
        own = {
            "full": torch.diag(self.variance).expand(starts, components, self.dim, self.dim),
            "tied": torch.diag(self.variance).expand(starts, 1, self.dim, self.dim),
            "diag": self.variance.expand(starts, components, self.dim),
            "spherical": self.variance.mean().expand(starts, components, 1),
        }
        return self.complete({"mean": mean, "covariance": own[self.covariance]})


def _column_means(x: Tensor, weight: Tensor | None, origin: Tensor, power: int) -> Tensor:
    """The weighted mean of (x − origin)^power in each column, over the values that are not missing."""
    total, count = torch.zeros_like(origin), torch.zeros_like(origin)
    for start in range(0, len(x), 4096):
        gap = x[start : start + 4096].double() - origin
        own = torch.ones(len(gap), dtype=torch.float64) if weight is None else weight[start : start + 4096]
        total += own @ gap.pow(power).nan_to_num(nan=0.0, posinf=torch.inf, neginf=-torch.inf)
        count += own @ (~gap.isnan()).double()
    return total / count.clamp_min(1e-300)
