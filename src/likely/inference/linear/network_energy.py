"""The energy of any network with any likelihood, for Newton: the Hessian is Gauss-Newton's.

E(θ) = −Σ w log p(y | η(x; θ)) − log p(θ),   H ≈ Σ Jᵀ S J − ∂² log p(θ)      J = ∂η/∂θ,  S = information
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ...core import distributed
from ...networks.jacobian import Jacobian
from ..objective import OnEta
from ..parameters import FlatParameters
from ..problem import Problem
from ..settle import settle

__all__ = ["NetworkEnergy"]


class NetworkEnergy:
    """E as a function of the flat parameter vector. Dropout is off; batch norm uses fixed statistics of the data."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.module: nn.Module = settle(problem.module(), problem)
        self.parameters = FlatParameters.trainable(self.module)
        self.jacobian = Jacobian(self.module, tuple(self.parameters.shapes))
        self.size = self.parameters.size
        self._l1, self._l2 = self._rates()

    def start(self) -> Tensor:
        """The parameters that the module has now."""
        return self.parameters.flat(dict(self.module.named_parameters()))

    def load(self, point: Tensor) -> None:
        """Put a solution into the module."""
        own = dict(self.module.named_parameters())
        with torch.no_grad():
            for name, value in self.parameters.named(point).items():
                own[name].copy_(value)

    def l1(self) -> Tensor:
        """The L1 rate of each parameter."""
        return self._l1

    def _rates(self) -> tuple[Tensor, Tensor]:
        """The prior's penalty rates of every parameter; 0 where it is not of that form."""
        start = self.start()
        rates = {name: self.problem.rates(name, value) for name, value in self.parameters.named(start).items()}
        l1, l2 = (
            self.parameters.spread_out(lambda name, kind=kind: getattr(rates[name], kind, 0.0), start)  # type: ignore[misc]
            for kind in ("l1", "l2")
        )
        return l1, l2

    def value(self, point: Tensor, *, hessian: bool) -> tuple[float, Tensor, Tensor | None]:
        """E, its gradient, and Gauss-Newton's Hessian; without rates the prior's curvature is left to damping."""
        objective = self.problem.objective
        assert isinstance(objective, OnEta)
        total = torch.zeros((), dtype=torch.float64)
        gradient, matrix = torch.zeros_like(point), torch.zeros(self.size, self.size, dtype=torch.float64)
        data, named = self.problem.data, self.parameters.named(point)
        for batch in data.blocks(distributed.shard(len(data))):
            for part, eta, derivatives in self.jacobian.blocks(batch.x, named):
                size, y = eta.shape[-1], batch.y[part]
                flat_y = y.reshape(-1, *y.shape[eta.ndim - 1 :])
                log_prob, score, information = objective.derivatives(eta.reshape(-1, size), flat_y)
                if batch.weight is not None:
                    w = batch.weight[part].reshape(-1)
                    log_prob, score = log_prob * w, score * w[:, None]
                    information = information * w[:, None, None]
                rows = [derivatives[name].reshape(len(score), size, -1) for name in self.parameters.shapes]
                jacobian = torch.cat(rows, 2)  # (targets, size, d)
                total -= log_prob.sum()
                gradient -= torch.einsum("nk,nkp->p", score, jacobian)
                if hessian:
                    matrix += jacobian.flatten(0, 1).T @ (information @ jacobian).flatten(0, 1)
        distributed.sum_(total, gradient, matrix)
        with torch.enable_grad():
            theta = point.clone().requires_grad_()
            log_prior = self.problem.smooth_log_prior(self.parameters.named(theta))
            push = torch.autograd.grad(log_prior, theta, allow_unused=True)[0] if log_prior.requires_grad else None
        value = float(total) - float(log_prior.detach())
        gradient = gradient if push is None else gradient - push
        return value, gradient, matrix + torch.diag(self._l2) if hessian else None
