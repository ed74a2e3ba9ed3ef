"""The energy of any network with any likelihood, for Newton: the Hessian is Gauss-Newton's.

E(θ) = −Σ w log p(y | η(x; θ)) − log p(θ),   H ≈ Σ Jᵀ S J − ∂² log p(θ)      J = ∂η/∂θ,  S = information
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.func import functional_call

from ...core import distributed
from ...networks.jacobian import Jacobian
from ..dataset import Batch
from ..objective import OnEta
from ..parameters import FlatParameters
from ..problem import Problem
from ..settle import settle

__all__ = ["NetworkEnergy"]

TOGETHER = 32
"""Rows of a Hessian that are asked for at once."""


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
        self._rated = all(rate is not None for rate in rates.values())
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

    def left_out(self, point: Tensor) -> Tensor:
        """What Gauss-Newton leaves out: −Σ w ∂log p/∂η · ∂²η, and the curvature of a prior that has no rates.

        Not numbers where the network cannot be differentiated twice.
        """
        data, total = self.problem.data, torch.zeros(self.size, self.size, dtype=torch.float64)
        try:
            for batch in data.blocks(distributed.shard(len(data))):
                total += self._left_out_of(batch, point)
        except RuntimeError:
            total += torch.nan
        distributed.sum_(total)
        if self._rated:
            return total
        prior = _second(lambda theta: -self.problem.smooth_log_prior(self.parameters.named(theta)), point)
        return total + prior - torch.diag(self._l2)

    def _left_out_of(self, batch: Batch, point: Tensor) -> Tensor:
        """The part of some rows."""
        objective = self.problem.objective
        assert isinstance(objective, OnEta)
        eta = self.jacobian.eta(batch.x, self.parameters.named(point))
        y = batch.y.reshape(-1, *batch.y.shape[eta.ndim - 1 :])
        score = objective.smooth_value_and_grad(eta.reshape(-1, eta.shape[-1]), y)[1]
        score = score if batch.weight is None else score * batch.weight.reshape(-1, 1)

        def pushed(theta: Tensor) -> Tensor:
            eta = functional_call(self.module, (self.parameters.named(theta), self.jacobian.fixed), (batch.x,))
            return -(score * eta.reshape(score.shape)).sum()

        return _second(pushed, point)


def _second(f: Callable[[Tensor], Tensor], point: Tensor) -> Tensor:
    """∂²f, some rows at a time."""
    with torch.enable_grad():
        theta = point.clone().requires_grad_()
        value = f(theta)
        gradient = torch.autograd.grad(value, theta, create_graph=True)[0] if value.requires_grad else theta.detach()
        if not gradient.requires_grad:
            return theta.new_zeros(len(theta), len(theta))
        parts = torch.eye(len(theta), dtype=theta.dtype).split(TOGETHER)
        together = partial(torch.autograd.grad, gradient, theta, retain_graph=True, is_grads_batched=True)
        matrix = torch.cat([together(part)[0] for part in parts])
    return (matrix + matrix.T) / 2
