"""Densities on a part of space, as methods that follow gradients need them: on all of it.

    x = T(z),    log p(z) = log p(x) + log |det ∂T/∂z|

T is torch's bijection for the constraint (exp, logistic, stick breaking, …). Chains move in z; draws come back as x.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution, MixtureSameFamily, biject_to
from torch.distributions.constraints import Constraint, real
from torch.distributions.transforms import Transform

from ..core.errors import DataError
from .density import Density, shown

__all__ = ["Bijection", "bijection", "support_of"]

Support = Constraint | Sequence[Any] | Mapping[str, Constraint]
"""A constraint of the whole position; one for each coordinate or block, as (constraint, length); or some by name."""


@dataclass(frozen=True)
class Bijection:
    """x = T(z) for blocks of a vector, or for the `whole` position at once."""

    blocks: tuple[tuple[Transform, Constraint, int], ...]  # the last is the length of x
    whole: bool = False

    def forward(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """x (n, *event) and log |det ∂x/∂z| (n,) of each row."""
        parts, volume = [], z.new_zeros(len(z))
        for (transform, _, _), piece in zip(self.blocks, self._split(z, free=True), strict=True):
            part = transform(piece)
            volume = volume + transform.log_abs_det_jacobian(piece, part).reshape(len(z), -1).sum(1)
            parts.append(part)
        return (parts[0] if self.whole else torch.cat(parts, 1)), volume

    def inverse(self, x: Tensor) -> Tensor:
        """z of each row x; an error if a row lies outside or on the boundary."""
        parts = []
        for (transform, constraint, _), piece in zip(self.blocks, self._split(x, free=False), strict=True):
            part = transform.inv(piece)
            inside = constraint.check(piece).reshape(len(x), -1).all(1)
            bad = ~(inside & part.reshape(len(x), -1).isfinite().all(1))
            if bool(bad.any()):
                row = int(bad.nonzero()[0])
                raise DataError(
                    f"initial {shown(x[row])} of chain {row} is not inside the support, {constraint}; start inside, "
                    "away from the boundary."
                )
            parts.append(part)
        return parts[0] if self.whole else torch.cat(parts, 1)

    def density(self, log_prob: Density) -> Density:
        """log p(z) of a density of x."""

        def transformed(inner: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
            def asked(z: Tensor) -> Tensor:
                x, volume = self.forward(z)
                return inner(x) + volume

            return asked

        known = log_prob.value_and_grad

        def value_and_grad(z: Tensor) -> tuple[Tensor, Tensor]:
            assert known is not None
            with torch.enable_grad():
                point = z.detach().requires_grad_()
                x, volume = self.forward(point)
                value, inner = known(x.detach())
                (gradient,) = torch.autograd.grad((x * inner.to(x)).sum() + volume.sum(), point)
            return value + volume.detach(), gradient

        given = None if known is None else value_and_grad
        return Density(transformed(log_prob), transformed(log_prob.unchecked), given)

    def _split(self, rows: Tensor, free: bool) -> Sequence[Tensor]:
        if self.whole:
            return [rows]
        return rows.split([t.inverse_shape((length,))[-1] if free else length for t, _, length in self.blocks], 1)


def bijection(support: Support, event: tuple[int, ...], names: str | tuple[str, ...]) -> Bijection | None:
    """T for a support of positions (*event); None if that is everywhere."""
    if isinstance(support, Constraint):
        if support.event_dim > len(event):
            raise DataError(f"support {support} is of more axes than positions of shape {event} have.")
        return None if _everywhere(support) else Bijection(((_transform(support), support, 0),), whole=True)
    if isinstance(support, Mapping):
        support = _by_name(support, names)
    if not isinstance(support, Sequence) or isinstance(support, str):
        raise DataError(
            f"support must be a torch constraint, a list of them or a dict by name; found {type(support).__name__}."
        )
    blocks: list[tuple[Transform, Constraint, int]] = []
    for index, item in enumerate(support):
        constraint, length = item if isinstance(item, tuple) and len(item) == 2 else (item, 1)
        if not isinstance(constraint, Constraint) or isinstance(length, bool) or not isinstance(length, int):
            raise DataError(
                f"support[{index}] must be a torch constraint, or (constraint, length) for a block; found {item!r}."
            )
        if constraint.event_dim > 1:
            raise DataError(f"support[{index}] is of matrices, {constraint}; a block of a vector cannot be one.")
        blocks.append((_transform(constraint), constraint, length))
    total = sum(length for _, _, length in blocks)
    if event != (total,):
        raise DataError(f"support describes a vector of {total} numbers; positions have shape {event}.")
    return None if all(_everywhere(constraint) for _, constraint, _ in blocks) else Bijection(tuple(blocks))


def support_of(distribution: Distribution) -> Constraint | None:
    """The support of a distribution, if it has one."""
    if isinstance(distribution, MixtureSameFamily):  # its own says how to check, but not what it is
        return support_of(distribution.component_distribution)
    try:
        support = distribution.support
    except NotImplementedError:
        return None
    return support if isinstance(support, Constraint) else None


def _by_name(support: Mapping[str, Constraint], names: str | tuple[str, ...]) -> Sequence[Constraint]:
    known = () if isinstance(names, str) else names
    for name in support:
        if name not in known:
            raise DataError(
                f"support names {name!r}, but names are {list(known)}; give sample the names of all coordinates."
            )
    return [support.get(name, real) for name in known]


def _everywhere(constraint: Constraint) -> bool:
    return isinstance(getattr(constraint, "base_constraint", constraint), type(real))


def _transform(constraint: Constraint) -> Transform:
    if constraint.is_discrete:
        raise DataError(f"support {constraint} holds integers, which have no gradient; use Gibbs(supports=…).")
    try:
        return biject_to(constraint)
    except NotImplementedError as error:
        raise DataError(
            f"torch has no one-to-one map from real numbers onto the support {constraint}; write log_prob in terms of "
            "unconstrained numbers, with the log-determinant of the change added."
        ) from error
