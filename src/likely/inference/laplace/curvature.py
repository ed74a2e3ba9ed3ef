"""The curvature H of −log p(θ | data) at the mode: generalised Gauss-Newton for the data, diagonal for the prior.

    H = Σᵢ wᵢ Jᵢᵀ Sᵢ Jᵢ + P        Jᵢ = ∂η(xᵢ)/∂θ,   S = information of η,   P = −∂² log p(θ)/∂θ²

Kronecker: a linear layer s = W a + b has Jᵢ = aᵢᵀ ⊗ ∂η/∂s, and the sum is taken to be A ⊗ G with A = Σ w a aᵀ and
G = Σ w (∂η/∂s)ᵀ S (∂η/∂s) / Σ w; other parameters keep their diagonal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from ...core import distributed
from ...data.rows import Inputs, Rows
from ...networks.jacobian import Jacobian
from ..dataset import Batch
from ..objective import OnEta
from ..predictor import is_linear
from ..problem import Problem
from .blocks import Block, dense, diagonal, layer

__all__ = ["full_blocks", "independent_blocks", "kronecker_blocks", "prior_curvature"]


def full_blocks(problem: Problem, module: nn.Module, prior: Mapping[str, Tensor]) -> list[Block]:
    """One block with all entries of H⁻¹."""
    names = tuple(prior)
    size = sum(value.numel() for value in prior.values())
    hessian = torch.zeros(size, size, dtype=torch.float64, device=problem.data.x.device)
    for jacobian, root in _weighted(problem, module, names):
        flat = torch.cat([jacobian[name].flatten(2) for name in names], 2)  # (targets, size of η, d)
        rows = (root.mT @ flat).flatten(0, 1)
        hessian += rows.T @ rows
    distributed.sum_(hessian)
    return [dense(names, hessian + torch.diag(torch.cat([value.flatten() for value in prior.values()])))]


def independent_blocks(problem: Problem, module: nn.Module, prior: Mapping[str, Tensor]) -> list[Block]:
    """One block with the inverse of H's diagonal."""
    names = tuple(prior)
    if not names:
        return []
    curvature = {name: torch.zeros_like(value) for name, value in prior.items()}
    for jacobian, root in _weighted(problem, module, names):
        for name in names:
            rows = root.mT @ jacobian[name].flatten(2)
            curvature[name] += rows.square().sum((0, 1)).view_as(curvature[name])
    distributed.sum_(*curvature.values())
    return [diagonal(names, torch.cat([(curvature[name] + prior[name]).flatten() for name in names]))]


def kronecker_blocks(problem: Problem, module: nn.Module, prior: Mapping[str, Tensor]) -> list[Block]:
    """A block for each linear layer, and the diagonal of what is not in one."""
    data = problem.data
    layers = _layers(module, data.batch(slice(0, 2)).x, prior)
    factors = {name: _Factors(own, "bias" in _own(name, prior)) for name, own in layers.items()}
    for batch in data.blocks(distributed.shard(len(data))):
        _gather(problem, module, factors, batch)
    blocks: list[Block] = []
    for name, pair in factors.items():
        distributed.sum_(pair.inputs, pair.outputs, pair.total)
        names = tuple(f"{name}.{own}" for own in _own(name, prior))
        rate = prior[names[0]].mean(0)
        if len(names) > 1:
            rate = torch.cat([rate, prior[names[1]].mean().reshape(1)])
        blocks.append(layer(names, pair.inputs, pair.outputs / pair.total, rate))
    taken = {name for block in blocks for name in block.names}
    rest = {name: value for name, value in prior.items() if name not in taken}
    return [*blocks, *independent_blocks(problem, module, rest)]


def prior_curvature(problem: Problem, module: nn.Module, names: tuple[str, ...]) -> dict[str, Tensor]:
    """−∂² log p(θ) of each parameter: exact for priors that factorise over parameters, and never negative."""
    own = dict(module.named_parameters())
    known = {}
    for name in names:
        rates = problem.rates(name, own[name])
        if rates is not None:
            known[name] = torch.full_like(own[name], rates.l2)
    others = {name: own[name].detach().clone().requires_grad_() for name in names if name not in known}
    if others:
        with torch.enable_grad():
            log_prior = problem.smooth_log_prior({k: v.detach() for k, v in own.items()} | others)
            gradients = _gradients(log_prior, others)
            curvature = _gradients(sum(gradient.sum() for gradient in gradients.values()), others)
        known |= {name: (-value).detach().clamp_min(0) for name, value in curvature.items()}
    return {name: known[name] for name in names}


def _gradients(value: Any, of: dict[str, Tensor]) -> dict[str, Tensor]:
    if not isinstance(value, Tensor) or not value.requires_grad:
        return {name: torch.zeros_like(tensor) for name, tensor in of.items()}
    grads = torch.autograd.grad(value, list(of.values()), create_graph=True, allow_unused=True)
    return {n: torch.zeros_like(v) if g is None else g for (n, v), g in zip(of.items(), grads, strict=True)}


def _weighted(
    problem: Problem, module: nn.Module, names: tuple[str, ...]
) -> Iterator[tuple[dict[str, Tensor], Tensor]]:
    """J of targets (targets, size of η, *shape) with roots of w S, block by block."""
    jacobian = Jacobian(module, names)
    for batch in problem.data.blocks(distributed.shard(len(problem.data))):
        for part, eta, derivatives in jacobian.blocks(batch.x):
            root = _root(problem, eta, batch, part)
            size = eta.shape[-1]
            yield {n: v.reshape(-1, size, *v.shape[2:]) for n, v in derivatives.items()}, root


def _root(problem: Problem, eta: Tensor, batch: Batch, part: slice) -> Tensor:
    """R with RRᵀ = w S, for each target: (targets, size, size)."""
    size, y = eta.shape[-1], batch.y[part]
    assert isinstance(problem.objective, OnEta)
    _, _, information = problem.objective.derivatives(eta.reshape(-1, size), y.reshape(-1, *y.shape[eta.ndim - 1 :]))
    if batch.weight is not None:
        information = information * batch.weight[part].reshape(-1, 1, 1)
    if size == 1:
        return information.clamp_min(0).sqrt()
    values, vectors = torch.linalg.eigh(information)
    return vectors * values.clamp_min(0).sqrt().unsqueeze(-2)


class _Factors:
    """A and G of one layer, as they are summed up, and what the last pass through it saw."""

    def __init__(self, own: nn.Linear, bias: bool) -> None:
        self.own, self.bias = own, bias
        width = own.in_features + int(bias)
        self.inputs = own.weight.new_zeros(width, width)
        self.outputs = own.weight.new_zeros(own.out_features, own.out_features)
        self.total = own.weight.new_zeros(())

    def watch(self, _: nn.Module, given: tuple[Tensor, ...], result: Tensor) -> Tensor:
        """Keep a, and s with a gradient; what goes on is a copy, which may be changed in place."""
        self.a = given[0].detach()
        self.s = result if result.requires_grad else result.detach().requires_grad_()
        return self.s.clone()

    def add(self, weight: Tensor) -> None:
        """Add the inputs of the last pass to A. A row counts once for each position that the layer is applied at."""
        a = torch.cat([self.a, torch.ones_like(self.a[..., :1])], -1) if self.bias else self.a
        weights = weight.reshape(-1, *(1 for _ in a.shape[1:])).expand(*a.shape[:-1], 1)
        flat = a.reshape(-1, a.shape[-1])
        self.inputs += (weights.reshape(-1, 1) * flat).T @ flat
        self.total += weights.sum()


def _gather(problem: Problem, module: nn.Module, factors: Mapping[str, _Factors], batch: Batch) -> None:
    """Add a batch to A and G of every layer."""
    hooks = [pair.own.register_forward_hook(pair.watch) for pair in factors.values()]
    try:
        with torch.enable_grad():
            eta = module(batch.x)
    finally:
        for hook in hooks:
            hook.remove()
    root = _root(problem, eta.detach(), batch, slice(None)).reshape(*eta.shape, eta.shape[-1])
    weight = torch.ones(eta.shape[:-1], dtype=eta.dtype, device=eta.device) if batch.weight is None else batch.weight
    for pair in factors.values():
        pair.add(weight.reshape(len(eta), -1).mean(1))
    if not eta.requires_grad:  # no linear layer on the way
        return
    flat, columns = eta.flatten(1, -2) if eta.ndim > 2 else eta.unsqueeze(1), eta.shape[-1]
    root = root.reshape(*flat.shape, columns)  # (n, targets per row, size, size)
    for target in range(flat.shape[1]):
        for column in range(columns):
            seed = (root[:, target, :, column] * flat[:, target]).sum()
            grads = torch.autograd.grad(seed, [e.s for e in factors.values()], retain_graph=True, allow_unused=True)
            for pair, grad in zip(factors.values(), grads, strict=True):
                if grad is not None:
                    rows = grad.reshape(-1, grad.shape[-1])
                    pair.outputs += rows.T @ rows


def _layers(module: nn.Module, x: Inputs, trainable: Mapping[str, Tensor]) -> dict[str, nn.Linear]:
    """The linear layers that a pass goes through exactly once, row by row; where rows may meet, there is none."""
    if isinstance(x, Rows):
        return {}
    layers = {n: m for n, m in module.named_modules() if is_linear(m) and f"{n}.weight" in trainable}
    calls = dict.fromkeys(layers, 0)

    def count(name: str) -> Callable[..., None]:
        def hook(_: nn.Module, given: tuple[Tensor, ...], __: Any) -> None:
            calls[name] += 1 if len(given[0]) == len(x) else 2

        return hook

    hooks = [layer.register_forward_hook(count(name)) for name, layer in layers.items()]
    try:
        with torch.no_grad():
            module(x)
    finally:
        for hook in hooks:
            hook.remove()
    return {name: layer for name, layer in layers.items() if calls[name] == 1}  # type: ignore[misc]


def _own(name: str, trainable: Mapping[str, Tensor]) -> list[str]:
    return [own for own in ("weight", "bias") if f"{name}.{own}" in trainable]
