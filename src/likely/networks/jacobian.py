"""The derivatives of a module's outputs with respect to its parameters, row by row and some rows at a time.

J(x) = ∂η(x; θ)/∂θ      (outputs of a row × shape of each parameter)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

import torch
from torch import Tensor, nn
from torch.func import functional_call, jacrev, vmap

from ..core.gradients import following
from ..data.rows import Inputs, Rows

__all__ = ["Jacobian"]

Parameters = Mapping[str, Tensor]

BLOCK = 1 << 22
"""Numbers of one block of Jacobians."""


class Jacobian:
    """η of rows and its derivatives with respect to some parameters of a module: all of them, unless `names` are given.

    Rows of a tensor do not meet in the module, so that each has a Jacobian of its own; other rows (sequences, graphs)
    are taken together. A module that cannot be vectorised is differentiated row by row.

    >>> line = nn.Linear(2, 1)
    >>> [(_, eta, derivatives)] = Jacobian(line).blocks(torch.tensor([[1.0, 2.0], [3.0, 0.0]]))
    >>> derivatives["weight"][:, 0, 0], derivatives["bias"][:, 0]  # rows × outputs × shape
    (tensor([[1., 2.],
            [3., 0.]]), tensor([[1.],
            [1.]]))
    """

    def __init__(self, module: nn.Module, names: tuple[str, ...] | None = None) -> None:
        own = {name: value.detach() for name, value in module.named_parameters()}
        self.module = module
        self.chosen = own if names is None else {name: own[name] for name in names}
        everything = own | dict(module.named_buffers())
        self.fixed = {name: value for name, value in everything.items() if name not in self.chosen}
        self.size = sum(value.numel() for value in self.chosen.values())
        self._vmap = True

    def eta(self, x: Inputs, at: Parameters | None = None) -> Tensor:
        """η of all rows, at the module's own parameters or `at` others."""
        with following(x):
            return self._eta(self.chosen if at is None else at, x)

    def step(self, x: Inputs) -> int:
        """How many rows have Jacobians of no more than `BLOCK` numbers together."""
        width = self.eta(x[:1]).numel() if len(x) else 1
        return max(1, BLOCK // max(1, self.size * width))

    def blocks(self, x: Inputs, at: Parameters | None = None) -> Iterator[tuple[slice, Tensor, dict[str, Tensor]]]:
        """Slices of η's first axis with η (b, …, size) and derivatives (b, numbers of η in an entry, *shape)."""
        done = 0
        for rows in x.split(self.step(x)):
            eta = self.eta(rows, at)
            part = slice(done, done + len(eta))
            done += len(eta)
            yield part, eta, self.of(rows, at)

    def of(self, x: Inputs, at: Parameters | None = None) -> dict[str, Tensor]:
        """The derivatives of η at these rows (b, numbers of η in an entry, *shape), all held at once."""
        point = self.chosen if at is None else dict(at)
        return self._by_rows(x, point) if isinstance(x, Tensor) else self._together(x, point)

    def _eta(self, chosen: Parameters, x: Inputs) -> Tensor:
        return functional_call(self.module, (dict(chosen), self.fixed), (x,))

    def _by_rows(self, x: Tensor, point: dict[str, Tensor]) -> dict[str, Tensor]:
        def eta_of(chosen: Parameters, row: Tensor) -> Tensor:
            return self._eta(chosen, row.unsqueeze(0)).reshape(-1)

        if self._vmap:
            try:
                return vmap(jacrev(eta_of), in_dims=(None, 0))(point, x)
            except RuntimeError:  # the module does something that cannot be vectorised over rows: one by one then
                self._vmap = False
        rows = [_one_by_one(partial(eta_of, row=row), point) for row in x]
        return {name: torch.stack([row[name] for row in rows]) for name in point}

    def _together(self, x: Rows, point: dict[str, Tensor]) -> dict[str, Tensor]:
        """Rows that a module may only take as a whole."""

        def eta_of(chosen: Parameters) -> Tensor:
            return self._eta(chosen, x)

        if self._vmap:
            try:
                return jacrev(eta_of)(point)
            except RuntimeError:
                self._vmap = False
        shape = self.eta(x, point).shape
        flat = _one_by_one(lambda chosen: eta_of(chosen).reshape(-1), point)
        return {name: value.reshape(*shape, *value.shape[1:]) for name, value in flat.items()}


def _one_by_one(eta_of: Callable[[Parameters], Tensor], point: Parameters) -> dict[str, Tensor]:
    """By one gradient for each number of η: (numbers, *shape)."""
    with torch.enable_grad():
        chosen = {name: value.clone().requires_grad_() for name, value in point.items()}
        gradients = []
        for number in eta_of(chosen):
            parts = torch.autograd.grad(number, list(chosen.values()), retain_graph=True, allow_unused=True)
            pairs = zip(parts, chosen.values(), strict=True)
            gradients.append([torch.zeros_like(v) if g is None else g for g, v in pairs])
    return {name: torch.stack([row[i] for row in gradients]).detach() for i, name in enumerate(chosen)}
