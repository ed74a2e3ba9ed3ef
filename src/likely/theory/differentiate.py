"""Derivatives of any torch function, by forward and by reverse mode: JVP, VJP, Jacobian, Hessian.

    forward    v ↦ J v      one pass for each input,   derivatives travel along with the values
    reverse    u ↦ uᵀ J     one pass for each output,  derivatives travel back from the values

With n inputs and m outputs the Jacobian J = ∂f/∂x takes n passes forward or m passes in reverse: reverse mode is made
for losses (m = 1), forward mode for curves (n = 1). The Hessian is the Jacobian of the Jacobian.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from ..core.errors import DataError, SpecError
from ..core.quiet import quiet
from ..models.supervised.base import Supervised

__all__ = ["hessian", "jacobian", "jvp", "module_of", "vjp"]

Mode = Literal["forward", "reverse", "auto"]
Function = Callable[[Tensor], Tensor]

MODES = ("forward", "reverse", "auto")
BLOCK = 1 << 24
"""Numbers of x that are differentiated along at once."""


def jvp(function: Any, x: Any, direction: Any) -> tuple[Tensor, Tensor]:
    """f(x) and J v, the change of f when x moves along v: one pass of forward mode.

    >>> value, change = jvp(torch.sin, torch.zeros(1), torch.ones(1))
    >>> value, change
    (tensor([0.]), tensor([1.]))
    """
    f, point = _prepared(function, x)
    return _jvp(f, point, _like(direction, point, "direction", "x"))


def vjp(function: Any, x: Any, weights: Any) -> tuple[Tensor, Tensor]:
    """f(x) and uᵀ J, the gradient of u·f: one pass of reverse mode.

    >>> value, gradient = vjp(lambda x: x**2, torch.tensor([1.0, 3.0]), torch.ones(2))
    >>> gradient
    tensor([2., 6.])
    """
    f, point = _prepared(function, x)
    value, pull, *_ = torch.func.vjp(f, point)
    return value, pull(_like(weights, value, "weights", "f(x)"))[0]


def jacobian(function: Any, x: Any, mode: Mode = "auto", *, rows: bool = False) -> Tensor:
    """∂f/∂x, with the axes of f(x) first: (*outputs, *inputs).

    `function` is any function from a tensor to a tensor, a module, or a fitted `Classifier` or `Regressor` (its η).
    `mode` is "forward" (as many passes as x has numbers), "reverse" (as many as f(x) has) or "auto", the fewer of the
    two. With `rows`, x and f(x) are batches whose rows do not meet: the answer holds the Jacobian of each row,
    (n, *outputs, *inputs), for as many passes as one row needs.

    >>> jacobian(lambda x: torch.stack([x[0] * x[1], x[0] + x[1]]), torch.tensor([2.0, 3.0]))
    tensor([[3., 2.],
            [1., 1.]])
    >>> jacobian(nn.Tanh(), torch.zeros(2, 1), rows=True).shape
    torch.Size([2, 1, 1])
    """
    f, point = _prepared(function, x)
    _known(mode)
    _batched(point, rows)
    return _jacobian(f, point, mode, rows)


def hessian(function: Any, x: Any, mode: Mode = "auto", *, rows: bool = False) -> Tensor:
    """∂²f/∂x², with the axes of f(x) first: (*outputs, *inputs, *inputs).

    `mode` is "forward" (forward over forward), "reverse" (reverse over reverse) or "auto": forward over reverse, which
    for one output takes one pass through the gradient for each input. `rows` is that of `jacobian`.

    >>> hessian(lambda x: x[0] ** 2 * x[1], torch.tensor([1.0, 2.0]))
    tensor([[4., 2.],
            [2., 0.]])
    """
    f, point = _prepared(function, x)
    _known(mode)
    _batched(point, rows)
    inner: Mode = "reverse" if mode == "auto" else mode
    outer: Mode = "forward" if mode == "auto" else mode
    return _jacobian(lambda at: _jacobian(f, at, inner, rows), point, outer, rows)


def module_of(model: Any) -> nn.Module:
    """The module of a fitted estimator that holds one parameter vector; a module is its own.

    >>> module_of(nn.Tanh())
    Tanh()
    """
    if isinstance(model, nn.Module):
        return model
    if not isinstance(model, Supervised):
        received = type(model).__name__
        raise DataError(f"A torch module or a fitted Classifier or Regressor is needed; found a {received}.")
    check_is_fitted(model)
    members = len(model.posterior_)
    if members > 1:
        name = type(model).__name__
        raise DataError(f"{name} holds {members} parameter vectors; give one of them, posterior_.module_of(0).")
    return model.posterior_.module


def _jacobian(f: Function, x: Tensor, mode: Mode, rows: bool) -> Tensor:
    inputs = x[0] if rows else x
    if mode == "forward":
        return _forward(f, x, inputs, rows)
    value, pull, *_ = torch.func.vjp(f, x)
    if not isinstance(value, Tensor) or (rows and value.shape[:1] != x.shape[:1]):
        received = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
        raise DataError(f"function must give a tensor{' with a row for each of x' if rows else ''}; found {received}.")
    outputs = value[0] if rows else value
    if mode == "auto" and inputs.numel() < outputs.numel():
        return _forward(f, x, inputs, rows)
    # (outputs, [n,] *inputs): what each output pulls back, in all rows at once
    gradients = _each(lambda u: pull(u.expand_as(value))[0], _basis(outputs), x.numel())
    gradients = gradients.movedim(0, 1) if rows else gradients
    return gradients.reshape(*value.shape, *inputs.shape)


def _forward(f: Function, x: Tensor, inputs: Tensor, rows: bool) -> Tensor:
    # (inputs, *value): how all rows move when one number of each does
    columns = _each(lambda v: _jvp(f, x, v.expand_as(x))[1], _basis(inputs), x.numel())
    columns = columns.movedim(0, -1)
    return columns.reshape(*columns.shape[:-1], *inputs.shape)


def _jvp(f: Function, x: Tensor, direction: Tensor) -> tuple[Tensor, Tensor]:
    with quiet(DeprecationWarning):  # torch compiles its own forward-mode rules by a way that it deprecates
        value, change, *_ = torch.func.jvp(f, (x,), (direction,))
    return value, change


def _basis(like: Tensor) -> Tensor:
    """The unit vectors of a space of tensors: (numbers, *shape)."""
    return torch.eye(like.numel(), dtype=like.dtype, device=like.device).reshape(-1, *like.shape)


def _each(run: Callable[[Tensor], Tensor], directions: Tensor, size: int) -> Tensor:
    """One pass for each direction: together where torch can, one after the other where an operation forbids it."""
    try:
        return torch.vmap(run, chunk_size=max(1, BLOCK // max(1, size)))(directions)
    except RuntimeError:
        return torch.stack([run(direction) for direction in directions])


def _prepared(function: Any, x: Any) -> tuple[Function, Tensor]:
    f = function if callable(function) and not isinstance(function, type) else module_of(function)
    point = x if isinstance(x, Tensor) else torch.as_tensor(np.asarray(x))
    if f is not function or isinstance(f, nn.Module):
        dtype = next((p.dtype for p in f.parameters()), point.dtype)
        point = point.to(dtype)
    if not point.is_floating_point():
        raise DataError(f"x must be a tensor of real numbers to be differentiated at; found {point.dtype}.")
    return f, point


def _like(given: Any, value: Tensor, name: str, other: str) -> Tensor:
    tensor = torch.as_tensor(given, dtype=value.dtype, device=value.device)
    if tensor.shape != value.shape:
        raise DataError(f"{name} has shape {tuple(tensor.shape)}; it must be that of {other}, {tuple(value.shape)}.")
    return tensor


def _known(mode: str) -> None:
    if mode not in MODES:
        raise SpecError(f"mode={mode!r} must be one of {', '.join(MODES)}.")


def _batched(x: Tensor, rows: bool) -> None:
    if rows and (x.ndim < 1 or not len(x)):
        raise DataError(f"x must have rows to be differentiated one by one; found shape {tuple(x.shape)}.")
