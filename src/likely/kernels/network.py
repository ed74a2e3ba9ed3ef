"""Kernels made of networks: NNGP, the covariance of random networks, and NTK, the kernel that training follows.

NNGP(x, x′) = E_θ[f(x; θ) f(x′; θ)],      NTK(x, x′) = ∂f(x; θ)/∂θ · ∂f(x′; θ)/∂θ
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from ..core.errors import DataError
from ..core.random import isolated, spread
from ..core.spec import require
from ..networks import MLP, Network
from ..networks.layers.activation import gain
from .base import Kernel, KernelModule
from .infinite import Recursion, dense_layers
from .tangent import tangent_kernel

__all__ = ["NNGP", "NTK"]

MOST_DRAWS = 100_000
"""Networks that are built and kept for an average."""
DEPENDENT = ("BatchNorm", "VirtualBatchNorm", "ReferenceBatch", "InstanceNorm")
"""Layers whose output for a row depends on other rows, or on rows of training."""


class _OfNetwork(Kernel):
    network: Network = MLP()
    width: Literal["infinite", "finite"] = "infinite"
    weight_variance: float | None = None
    bias_variance: float = 0.0
    random_state: int = 0

    @classmethod
    def example(cls) -> _OfNetwork:
        """One small layer."""
        return cls(MLP((8,)))

    def validate(self) -> None:
        require(isinstance(self.network, Network), self, "network", "a network such as MLP((512,))")
        require(self.width in ("infinite", "finite"), self, "width", '"infinite" or "finite"')
        good = self.weight_variance is None or self.weight_variance > 0
        require(good, self, "weight_variance", "None or a positive number")
        require(self.bias_variance >= 0, self, "bias_variance", "0 or a positive number")
        if self.width == "infinite":
            dense_layers(self, self.network)

    def recursion(self) -> Recursion:
        """The limit of infinite width; without a variance, the one that keeps signals alive through its activation."""
        depth, activation = dense_layers(self, self.network)
        has_biases = self.network.get_params(deep=False).get("bias", True)
        return Recursion(depth, activation, self._weight_variance(), self.bias_variance if has_biases else 0.0)

    def scale(self, name: str, parameter: Tensor) -> float:
        """The variance of a parameter at the start: σw²/fan-in for weights, σb² for biases, 1 for others (as norms).

        Both kernels speak of networks whose parameters are √scale · θ with θ ~ N(0, 1): only so the tangent kernel
        has a limit, whatever the width.
        """
        if parameter.ndim >= 2:
            return self._weight_variance() * len(parameter) / parameter.numel()
        return self.bias_variance if name.rpartition(".")[2].startswith("bias") else 1.0

    def _weight_variance(self) -> float:
        if self.weight_variance is not None:
            return self.weight_variance
        own = self.network.get_params(deep=False).get("activation")
        return gain(own) ** 2 if isinstance(own, str) else 1.0

    @torch.no_grad()
    def module(self, x: Tensor, seed: int) -> nn.Module:
        """A random network with one output, in float64: weights N(0, σw²/fan-in), biases N(0, σb²)."""
        with isolated(seed):
            made = self.network.build(tuple(x.shape[1:]), 1)
            for name, parameter in made.named_parameters():
                if parameter.ndim >= 2 or name.rpartition(".")[2].startswith("bias"):
                    parameter.normal_().mul_(self.scale(name, parameter) ** 0.5)
        for layer in made.modules():
            if any(name in type(layer).__name__ for name in DEPENDENT):
                raise DataError(
                    f"{type(self).__name__} of {self.network!r}: its {type(layer).__name__} makes the output for a row "
                    'depend on other rows, so there is no kernel; use norm="layer" or none.'
                )
        return made.to(x.dtype).eval()


class NNGP(_OfNetwork):
    """NNGP(network, width="infinite"): the prior over functions that random networks are.

    Weights are N(0, σw²/fan-in) and biases N(0, σb²), with σw² = `weight_variance`, by default the one that keeps the
    variance of signals, and σb² = `bias_variance`. In the limit of infinite width it is exact, for plain dense
    networks. With width="finite" it is the average over `draws` random networks of any kind.

    >>> kernel = NNGP(MLP((512,), activation="relu"))
    >>> kernel.matrix([[1.0, 0.0], [0.0, 1.0]]).round(decimals=3)
    tensor([[1.0000, 0.3180],
            [0.3180, 1.0000]], dtype=torch.float64)
    """

    draws: int = 100

    def validate(self) -> None:
        super().validate()
        require(1 <= self.draws <= MOST_DRAWS, self, "draws", f"an integer from 1 to {MOST_DRAWS:,}")

    def build(self, x: Tensor) -> KernelModule:
        return _Limit(self, tangent=False) if self.width == "infinite" else _Average(self, x)


class NTK(_OfNetwork):
    """NTK(network, width="infinite"): what gradient descent on the network does to its function.

    Parameters are √variance · θ with standard normal θ: weights have σw²/fan-in (σw² = `weight_variance`, by default
    the one that keeps the variance of signals), biases σb² (`bias_variance`). In the limit of infinite width (plain
    dense networks) it is the same for every start and does not change in training. With width="finite" it is that of
    a network of any kind with one output, drawn from `random_state`.

    >>> kernel = NTK(MLP((512,), activation="relu"))
    >>> kernel.matrix([[1.0, 0.0], [0.0, 1.0]]).round(decimals=3)
    tensor([[2.0000, 0.3180],
            [0.3180, 2.0000]], dtype=torch.float64)
    """

    def build(self, x: Tensor) -> KernelModule:
        return _Limit(self, tangent=True) if self.width == "infinite" else _Tangent(self, x)


class _Limit(KernelModule):
    """K or Θ of the recursion."""

    def __init__(self, kernel: _OfNetwork, *, tangent: bool) -> None:
        super().__init__()
        self.kernel, self.tangent, self.recursion = kernel, tangent, kernel.recursion()

    def forward(self, x: Tensor, other: Tensor | None = None) -> Tensor:
        return self.recursion.tangent(x, other) if self.tangent else self.recursion.covariance(x, other)

    def diagonal(self, x: Tensor) -> Tensor:
        return self.recursion.diagonal(x, tangent=self.tangent)

    def spec(self) -> Kernel:
        return self.kernel


class _Average(KernelModule):
    """The average over random networks."""

    def __init__(self, kernel: NNGP, x: Tensor) -> None:
        super().__init__()
        self.kernel = kernel
        self.networks = [kernel.module(x, seed) for seed in spread(kernel.random_state, kernel.draws)]

    @torch.no_grad()
    def forward(self, x: Tensor, other: Tensor | None = None) -> Tensor:
        rows = self._outputs(x)
        return rows @ (rows if other is None else self._outputs(other)).T / len(self.networks)

    def diagonal(self, x: Tensor) -> Tensor:
        return self._outputs(x).square().mean(1)

    def spec(self) -> Kernel:
        return self.kernel

    @torch.no_grad()
    def _outputs(self, x: Tensor) -> Tensor:
        return torch.cat([network.to(x.dtype)(x).reshape(len(x), 1) for network in self.networks], 1)


class _Tangent(KernelModule):
    """J Jᵀ of one network."""

    def __init__(self, kernel: NTK, x: Tensor) -> None:
        super().__init__()
        self.kernel = kernel
        self._network = [
            kernel.module(x, kernel.random_state)
        ]  # in a list: its weights are not parameters of the kernel

    def forward(self, x: Tensor, other: Tensor | None = None) -> Tensor:
        return tangent_kernel(self._network[0].to(x.dtype), x, other, scale=self.kernel.scale)

    def spec(self) -> Kernel:
        return self.kernel
