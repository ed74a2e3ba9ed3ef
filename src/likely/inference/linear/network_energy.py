"""The energy of any network with any likelihood, for Newton: the Hessian is Gauss-Newton's.

E(θ) = −Σ w log p(y | η(x; θ)) − log p(θ),   H ≈ Σ Jᵀ S J − ∂² log p(θ)      J = ∂η/∂θ,  S = information
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, jacrev, vmap

from ...core import distributed
from ...data.rows import Inputs
from ..objective import OnEta
from ..problem import Problem

__all__ = ["NetworkEnergy"]

BLOCK = 1 << 24
"""Numbers of one block of Jacobians."""


class NetworkEnergy:
    """E as a function of the flat parameter vector. Dropout is off; batch norm uses fixed statistics of the data."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.module: nn.Module = problem.module()
        self._settle_statistics()
        self.module.eval()
        self.trainable = {k: v for k, v in self.module.named_parameters() if v.requires_grad}
        self.fixed = {k: v for k, v in self.module.state_dict().items() if k not in self.trainable}
        self.size = sum(v.numel() for v in self.trainable.values())

    @torch.no_grad()
    def _settle_statistics(self) -> None:
        """One pass in training mode, so that layers which gather statistics have those of the data."""
        gathering = [m for m in self.module.modules() if getattr(m, "momentum", None) is not None]
        if gathering:
            self.module.train()
            for batch in self.problem.data.blocks():
                self.module(batch.x)

    def start(self) -> Tensor:
        """The parameters that the module has now."""
        return torch.cat([v.detach().flatten() for v in self.trainable.values()])

    def load(self, point: Tensor) -> None:
        """Put a solution into the module."""
        with torch.no_grad():
            for name, value in self._named(point).items():
                self.trainable[name].copy_(value)

    def l1(self) -> Tensor:
        """The L1 rate of each number."""
        parts = []
        for name, value in self.trainable.items():
            rates = self.problem.rates(name, value)
            parts.append(torch.full((value.numel(),), 0.0 if rates is None else rates.l1, dtype=torch.float64))
        return torch.cat(parts)

    def _named(self, point: Tensor) -> dict[str, Tensor]:
        sizes = [v.numel() for v in self.trainable.values()]
        pieces = point.split(sizes)
        return {k: p.view(v.shape) for (k, v), p in zip(self.trainable.items(), pieces, strict=True)}

    def value(self, point: Tensor, *, hessian: bool) -> tuple[float, Tensor, Tensor | None]:
        """E, its gradient, and Gauss-Newton's Hessian."""
        objective = self.problem.objective
        assert isinstance(objective, OnEta)
        total = torch.zeros((), dtype=torch.float64)
        slope, matrix = torch.zeros_like(point), torch.zeros(self.size, self.size, dtype=torch.float64)

        rows, data = max(1, BLOCK // self.size // 8), self.problem.data
        for batch in data.blocks(distributed.share(len(data)), rows):
            eta, jacobian = self._slopes(point, batch.x)
            flat_y = batch.y.reshape(-1, *batch.y.shape[eta.ndim - 1 :])
            log_prob, score, information = objective.derivatives(eta.reshape(-1, eta.shape[-1]), flat_y)
            if batch.weight is not None:
                w = batch.weight.reshape(-1)
                log_prob, score = log_prob * w, score * w[:, None]
                information = information * w[:, None, None]
            total -= log_prob.sum()
            slope -= torch.einsum("nk,nkp->p", score, jacobian)
            if hessian:
                matrix += jacobian.flatten(0, 1).T @ (information @ jacobian).flatten(0, 1)
        distributed.sum_(total, slope, matrix)
        with torch.enable_grad():
            theta = point.clone().requires_grad_()
            log_prior = self.problem.smooth_log_prior(self._named(theta))
            push = torch.autograd.grad(log_prior, theta, allow_unused=True)[0] if log_prior.requires_grad else None
        value = float(total) - float(log_prior.detach())
        slope = slope if push is None else slope - push
        if not hessian:
            return value, slope, None
        return value, slope, matrix + torch.diag(self._prior_curvature(point))

    def _slopes(self, point: Tensor, x: Inputs) -> tuple[Tensor, Tensor]:
        """η and ∂η/∂θ of every target: (targets, size, parameters). Rows of a tensor do not meet in the module."""

        def eta_of(flat: Tensor, rows: Any) -> Tensor:
            return functional_call(self.module, (self._named(flat), self.fixed), (rows,))

        eta = eta_of(point, x)
        if isinstance(x, Tensor):
            slopes = vmap(jacrev(lambda flat, row: eta_of(flat, row.unsqueeze(0))), in_dims=(None, 0))(point, x)
        else:
            slopes = jacrev(eta_of)(point, x)
        return eta, slopes.reshape(-1, eta.shape[-1], self.size)

    def _prior_curvature(self, point: Tensor) -> Tensor:
        """−∂² log p(θ) on the diagonal: exact for priors with rates, and 0 (left to the damping) for others."""
        parts = []
        for name, value in self.trainable.items():
            rates = self.problem.rates(name, value)
            parts.append(point.new_full((value.numel(),), 0.0 if rates is None else rates.l2))
        return torch.cat(parts)
