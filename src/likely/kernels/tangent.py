"""The empirical tangent kernel J Jᵀ of any network, never with the whole Jacobian in memory.

    Θ(x, x′) = (1/k) Σₒ ∂fₒ(x)/∂θ · ∂fₒ(x′)/∂θ,      k outputs

For a linear layer ∂f/∂W is the outer product g aᵀ of the gradient at its output and its input, so its part of the
kernel is (A A′ᵀ) ⊙ (G G′ᵀ): two products of matrices with as many columns as units. Other layers go through Jacobians,
some rows at a time.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from ..core.twins import twin
from ..networks.jacobian import Jacobian

__all__ = ["tangent_kernel"]


def tangent_kernel(
    module: nn.Module, x: Tensor, other: Tensor | None = None, scale: Callable[[str, Tensor], float] | None = None
) -> Tensor:
    """Θ of rows x, or of x with other rows: (n, m), averaged over the outputs of the module.

    `scale(name, parameter)` weighs each parameter's part: the kernel of a network whose parameters are
    √scale · θ.

    >>> line = nn.Linear(2, 1)
    >>> tangent_kernel(line, torch.tensor([[1.0, 2.0], [3.0, 0.0]]))                     # x·x′ + 1
    tensor([[ 6.,  4.],
            [ 4., 10.]])
    """
    factors = {name: 1.0 if scale is None else scale(name, value) for name, value in module.named_parameters()}
    module = twin(module)  # it gets hooks, and another thread may be asking
    layers = _linear_layers(module, x)
    if layers is not None:
        return _by_layers(module, layers, x, other, factors)
    return _by_blocks(module, x, other, factors)


def _linear_layers(module: nn.Module, x: Tensor) -> dict[str, nn.Linear] | None:
    """The linear layers by name, if all parameters are theirs and each sees one vector for each row, once."""
    layers = {name: layer for name, layer in module.named_modules() if type(layer) is nn.Linear}
    owned = {id(value) for layer in layers.values() for value in layer.parameters()}
    if any(id(value) not in owned for value in module.parameters()) or x.ndim != 2:
        return None
    calls: list[tuple[nn.Module, int]] = []
    hooks = [
        layer.register_forward_hook(lambda own, given, _: calls.append((own, given[0].ndim)))
        for layer in layers.values()
    ]
    try:
        with torch.no_grad():
            module(x[:1])
    finally:
        for hook in hooks:
            hook.remove()
    once = len(calls) == len(layers) == len({id(layer) for layer, _ in calls})
    return layers if once and all(axes == 2 for _, axes in calls) else None


def _by_layers(
    module: nn.Module, layers: dict[str, nn.Linear], x: Tensor, other: Tensor | None, factors: dict[str, float]
) -> Tensor:
    rows = _traces(module, layers, x)
    columns = rows if other is None else _traces(module, layers, other)
    total = x.new_zeros(len(x), len(x if other is None else other))
    for (name, layer), (inputs, gradients), (inputs2, gradients2) in zip(layers.items(), rows, columns, strict=True):
        prefix = f"{name}." if name else ""
        units = factors[f"{prefix}weight"] * (inputs @ inputs2.T)
        if layer.bias is not None:
            units += factors[f"{prefix}bias"]
        total += units * torch.einsum("kni,kmi->nm", gradients, gradients2)
    return total / rows[0][1].shape[0]


def _traces(module: nn.Module, layers: dict[str, nn.Linear], x: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Of each linear layer its inputs (n, in), and the gradients (k, n, out) of the module's outputs at its outputs."""
    inputs: dict[int, Tensor] = {}
    outputs: dict[int, Tensor] = {}

    def keep(layer: nn.Module, given: tuple[Tensor, ...], out: Tensor) -> None:
        inputs[id(layer)], outputs[id(layer)] = given[0].detach(), out

    hooks = [layer.register_forward_hook(keep) for layer in layers.values()]
    try:
        with torch.enable_grad():
            point = x.detach().requires_grad_()
            answer = module(point).reshape(len(x), -1)
            seen = [outputs[id(layer)] for layer in layers.values()]
            # rows do not meet in the module, so the gradient of a sum over rows is that of each row
            gradients = [torch.autograd.grad(column.sum(), seen, retain_graph=True) for column in answer.unbind(1)]
    finally:
        for hook in hooks:
            hook.remove()
    stacked = [torch.stack([gradient[index] for gradient in gradients]) for index in range(len(layers))]
    return [(inputs[id(layer)], gradient) for layer, gradient in zip(layers.values(), stacked, strict=True)]


def _by_blocks(module: nn.Module, x: Tensor, other: Tensor | None, factors: dict[str, float]) -> Tensor:
    derivatives = Jacobian(module)
    roots = {name: factor**0.5 for name, factor in factors.items()}

    def jacobian(rows: Tensor) -> Tensor:  # (rows, k, parameters)
        return torch.cat([roots[name] * part.flatten(2) for name, part in derivatives.of(rows).items()], 2)

    k, step = derivatives.eta(x[:1]).numel(), derivatives.step(x)
    columns = x if other is None else other
    total = x.new_empty(len(x), len(columns))
    for first in range(0, len(x), step):
        left = jacobian(x[first : first + step]).flatten(1)
        for second in range(0, len(columns), step):
            if other is None and second < first:  # the other half of a symmetric matrix
                total[first : first + step, second : second + step] = total[
                    second : second + step, first : first + step
                ].T
                continue
            same = other is None and second == first
            right = left if same else jacobian(columns[second : second + step]).flatten(1)
            total[first : first + step, second : second + step] = left @ right.T
    return total / k
