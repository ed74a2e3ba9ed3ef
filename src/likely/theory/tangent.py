"""Networks near their start: linear in their parameters, so training is the flow of a kernel.

    f(x; θ) ≈ f(x; θ₀) + J(x)(θ − θ₀),        df_t/dt = −K (f_t − y)   for squared error, with K = J Jᵀ

On training rows f_t = y + e^(−Kt)(f₀ − y); on others f_t = f₀ + K*K⁻¹(I − e^(−Kt))(y − f₀).
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from torch import Tensor, nn
from torch.func import functional_call, jvp

from ..core.errors import DataError
from ..core.quiet import quiet
from ..core.twins import twin
from ..kernels.tangent import tangent_kernel

__all__ = ["gradient_flow", "kernel_drift", "linearise"]


class Linearised(nn.Module):
    """The first-order Taylor series of a module in its parameters; trains as any module does."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self._start = {name: value.detach().clone() for name, value in module.named_parameters()}
        self._buffers_ = {name: value.detach().clone() for name, value in module.named_buffers()}
        self._module = [copy.deepcopy(module).eval()]  # in a list, so that only the moving copy has parameters
        self.moving = nn.ParameterDict({name.replace(".", "/"): value.clone() for name, value in self._start.items()})

    def forward(self, x: Tensor) -> Tensor:
        gap = {name: self.moving[name.replace(".", "/")] - start for name, start in self._start.items()}

        module = twin(self._module[0])

        def f(theta: dict[str, Tensor]) -> Tensor:
            return functional_call(module, (theta, self._buffers_), (x,))

        with quiet(DeprecationWarning):  # torch compiles its own forward-mode rules by a way that it deprecates
            value, change, *_ = jvp(f, (self._start,), (gap,))
        return value + change


def linearise(module: nn.Module) -> Linearised:
    """f(x; θ₀) + J(x)(θ − θ₀) as a module whose parameters are θ, starting at θ₀.

    >>> import torch
    >>> net = nn.Sequential(nn.Linear(1, 3), nn.Tanh(), nn.Linear(3, 1))
    >>> line, x = linearise(net), torch.ones(2, 1)
    >>> bool(torch.allclose(line(x), net(x)))                              # the same where it starts
    True
    """
    return Linearised(module)


def gradient_flow(
    kernel: Any, y: Any, time: float, start: Any = None, cross: Any = None, cross_start: Any = None
) -> np.ndarray:
    """f after gradient descent for `time` on ½‖f − y‖², on the training rows or, with `cross` = K(x*, x), on others.

    `kernel` is K (n, n) of the training rows; `start` and `cross_start` are f₀ there, 0 if not given. An infinite
    time ends at the kernel's interpolation. Time is the learning rate times the number of steps.

    >>> gradient_flow([[1.0]], [2.0], time=np.log(2.0))
    array([1.])
    """
    matrix, target = np.asarray(kernel, dtype=float), np.asarray(y, dtype=float)
    if matrix.ndim != 2 or matrix.shape != (len(target), len(target)):
        raise DataError(f"kernel must be a square matrix with a row for each target; found {matrix.shape}.")
    if not time >= 0:
        raise DataError(f"time={time!r} must be 0 or a positive number.")
    first = np.zeros_like(target) if start is None else np.asarray(start, dtype=float)
    rates, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
    if rates[0] < -1e-8 * abs(rates[-1]):
        raise DataError(f"kernel has the eigenvalue {rates[0]:.3g}; a kernel has none below 0.")
    rates = np.maximum(rates, 0.0)
    gap = vectors.T @ (target - first)
    decay = np.exp(-rates * time) if np.isfinite(time) else (rates == 0).astype(float)
    shape = (-1,) + (1,) * (target.ndim - 1)
    if cross is None:
        return target - vectors @ (decay.reshape(shape) * gap)
    other = np.asarray(cross, dtype=float)
    # (1 − e^(−rt)) / r, whose limit at r = 0 is t
    positive = np.where(rates > 0, rates, 1.0)
    moved = np.where(rates > 0, -np.expm1(-rates * time) / positive if np.isfinite(time) else 1 / positive, 0.0)
    if np.isfinite(time):
        moved = np.where(rates > 0, moved, time)
    begin = np.zeros((len(other), *target.shape[1:])) if cross_start is None else np.asarray(cross_start, dtype=float)
    return begin + other @ (vectors @ (moved.reshape(shape) * gap))


def kernel_drift(before: nn.Module, after: nn.Module, x: Tensor) -> float:
    """How far the tangent kernel moved in training: ‖K₁ − K₀‖ / ‖K₀‖ (Frobenius) on rows x; 0 in the lazy limit.

    >>> import torch
    >>> line = nn.Linear(2, 1)
    >>> kernel_drift(line, nn.Linear(2, 1), torch.randn(4, 2))            # a linear model's kernel never moves
    0.0
    """
    first, last = tangent_kernel(before, x), tangent_kernel(after, x)
    return float((last - first).norm() / first.norm())
