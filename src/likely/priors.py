"""What is believed of the parameters θ before the data; a penalty is −log prior.

    Flat       0                           Normal      ‖θ‖² / 2s²          (L2, ridge, weight decay)
    Laplace    ‖θ‖₁ / s   (L1, lasso)      ElasticNet  l1·‖θ‖₁ + l2·‖θ‖² / 2

A prior speaks of weights; biases (and norms' gains and learned scales: all parameters with fewer than two axes) are
flat unless `biases=` gives them one. MAP minimises the summed −log-likelihood − log prior, so `Laplace(scale=C)` is
scikit-learn's `C`, and `Normal(scale=s)` is ridge with the penalty σ²/s².
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import NamedTuple

import torch
from scipy.special import erfcx
from torch import Tensor

from .core.spec import FrozenDict, Spec, as_spec, require

__all__ = ["ElasticNet", "Flat", "Laplace", "Normal", "PerLayer", "Prior", "Rates"]

SMALLEST = 1e-15
"""The narrowest scale: rates beyond its inverse square leave what float32 can hold."""


class Rates(NamedTuple):
    """The penalty −log p(θ) = l1·|θ| + l2·θ²/2 + const of one parameter."""

    l1: float = 0.0
    l2: float = 0.0


class Prior(Spec, axis="prior"):
    """log p(θ) of named parameters. A prior of your own only needs `log_prob`."""

    def log_prob(self, parameters: Mapping[str, Tensor]) -> Tensor:
        """log p(θ), a scalar."""
        raise NotImplementedError(f"{type(self).__name__} must say its log_prob")

    def rates(self, name: str, value: Tensor) -> Rates | None:
        """The penalty rates of one parameter, if this prior is of that form; solvers use it where they can."""
        return None

    def smooth(self, parameters: Mapping[str, Tensor]) -> Tensor:
        """log p(θ) without its −l1·|θ| terms, which proximal steps take care of."""
        total = self.log_prob(parameters)
        for name, value in parameters.items():
            rates = self.rates(name, value)
            if rates is not None and rates.l1:
                total = total + rates.l1 * value.abs().sum()
        return total


class _Separable(Prior):
    """The same penalty on every weight, and another prior (or none) on biases."""

    def on_weights(self) -> Rates:
        """The rates of weights."""
        return Rates()

    def on_biases(self) -> Prior | None:
        """The prior of biases; none is flat."""
        return getattr(self, "biases", None)

    def rates(self, name: str, value: Tensor) -> Rates | None:
        """The rates of this parameter."""
        if not _is_bias(name, value):
            return self.on_weights()
        biases = self.on_biases()
        return Rates() if biases is None else biases.rates("weight", value.reshape(1, -1))

    def log_prob(self, parameters: Mapping[str, Tensor]) -> Tensor:
        """Σ −l1·|θ| − l2·θ²/2 − log Z, over all parameters."""
        total = _zero(parameters)
        for name, value in parameters.items():
            rates = self.rates(name, value)
            if rates is None:  # biases under a prior of a form of its own
                total = total + self.biases.log_prob({"weight": value.reshape(1, -1)})  # type: ignore[attr-defined]
                continue
            if rates.l1:
                total = total - rates.l1 * value.abs().sum()
            if rates.l2:
                total = total - 0.5 * rates.l2 * value.square().sum()
            total = total - value.numel() * _log_normaliser(rates)
        return total


class Flat(_Separable):
    """Nothing is believed: log p(θ) = 0.

    >>> import torch
    >>> Flat().log_prob({"weight": torch.ones(2, 2)})
    tensor(0.)
    """


class _Scaled(_Separable):
    """A family with one scale."""

    scale: float = 1.0
    biases: Prior | None = None

    def validate(self) -> None:
        """The scale is positive; text becomes a prior."""
        require(SMALLEST <= self.scale < math.inf, self, "scale", f"a positive number, {SMALLEST:g} or more")
        _read_biases(self)


class Normal(_Scaled):
    """Weights are normal with mean 0: −log p(θ) = ‖θ‖² / 2s² + const. This is L2, ridge, weight decay.

    >>> import torch
    >>> round(Normal(scale=1.0).log_prob({"weight": torch.zeros(1, 1)}).item(), 4)
    -0.9189
    """

    def on_weights(self) -> Rates:
        """l2 = 1 / s²."""
        return Rates(l2=self.scale**-2)


class Laplace(_Scaled):
    """Weights are Laplace: −log p(θ) = ‖θ‖₁ / s + const. This is L1, the lasso; some weights end exactly at 0.

    >>> import torch
    >>> round(Laplace(scale=0.5).log_prob({"weight": torch.ones(1, 1)}).item(), 4)
    -2.0
    """

    def on_weights(self) -> Rates:
        """l1 = 1 / s."""
        return Rates(l1=1 / self.scale)


class ElasticNet(_Separable):
    """Both penalties: −log p(θ) = l1·‖θ‖₁ + l2·‖θ‖²/2 + const.

    >>> import torch
    >>> ElasticNet(l1=0.0, l2=1.0).rates("weight", torch.ones(1, 1))
    Rates(l1=0.0, l2=1.0)
    """

    l1: float = 1.0
    l2: float = 1.0
    biases: Prior | None = None

    def validate(self) -> None:
        """Rates are not negative; text becomes a prior."""
        require(0 <= self.l1 <= 1 / SMALLEST, self, "l1", f"a number from 0 to {1 / SMALLEST:g}")
        require(0 <= self.l2 <= 1 / SMALLEST**2, self, "l2", f"a number from 0 to {1 / SMALLEST**2:g}")
        _read_biases(self)

    def on_weights(self) -> Rates:
        """As given."""
        return Rates(self.l1, self.l2)


class PerLayer(Prior):
    """One prior for the parameters whose names match a pattern, another for the rest; the first match counts.

    Names are those of the network's `named_parameters()`; `likely show` and `model.posterior_.parameters` list them.

    >>> PerLayer({"0.*": Normal(1.0), "*": Laplace(0.1)})
    PerLayer(layers={'0.*': Normal(), '*': Laplace(scale=0.1)})
    """

    layers: Mapping[str, Prior]
    default: Prior = Flat()

    @classmethod
    def example(cls) -> PerLayer:
        """L2 on everything named weight."""
        return cls({"*weight": Normal(2.0)})

    def validate(self) -> None:
        """Patterns lead to priors; text becomes a prior."""
        ok = isinstance(self.layers, Mapping) and all(isinstance(pattern, str) for pattern in self.layers)
        require(ok, self, "layers", 'a dict from name patterns to priors, such as {"0.*": Normal(1.0)}')
        read = {pattern: as_spec(prior, Prior, f"layers[{pattern!r}]") for pattern, prior in self.layers.items()}
        object.__setattr__(self, "layers", FrozenDict(read))
        object.__setattr__(self, "default", as_spec(self.default, Prior, "default"))

    def of(self, name: str) -> Prior:
        """The prior of the parameter with this name."""
        for pattern, prior in self.layers.items():
            if fnmatchcase(name, pattern):
                return prior
        return self.default

    def rates(self, name: str, value: Tensor) -> Rates | None:
        """Those of the matching prior."""
        return self.of(name).rates(name, value)

    def log_prob(self, parameters: Mapping[str, Tensor]) -> Tensor:
        """The sum of the matching priors."""
        total = _zero(parameters)
        for name, value in parameters.items():
            total = total + self.of(name).log_prob({name: value})
        return total


def _is_bias(name: str, value: Tensor) -> bool:
    return value.ndim < 2 or name == "shared" or name.rsplit(".", 1)[-1].startswith("bias")


def _read_biases(prior: _Separable) -> None:
    biases = prior.on_biases()
    if isinstance(biases, str):
        object.__setattr__(prior, "biases", as_spec(biases, Prior, "biases"))


def _zero(parameters: Mapping[str, Tensor]) -> Tensor:
    first = next(iter(parameters.values()), None)
    return torch.zeros(()) if first is None else first.new_zeros(())


def _log_normaliser(rates: Rates) -> float:
    """log ∫ exp(−l1·|θ| − l2·θ²/2) dθ, and 0 for the flat prior, which has none."""
    l1, l2 = rates
    if l1 == 0 and l2 == 0:
        return 0.0
    if l2 == 0:
        return math.log(2 / l1)
    scaled = float(erfcx(l1 / math.sqrt(2 * l2)))  # erfcx(r) = exp(r²)·erfc(r), which neither overflows nor cancels
    return 0.5 * math.log(2 * math.pi / l2) + math.log(scaled)
