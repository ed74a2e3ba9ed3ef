"""What the parts of a joint distribution say of one another, in nats.

    H(X | Y) = H(X, Y) − H(Y)          I(X; Y) = H(X) + H(Y) − H(X, Y) = KL(p(x, y) ‖ p(x) p(y)) ≥ 0

The joint is a table of probabilities, one axis a variable, or a `MultivariateNormal`, one coordinate a variable.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from torch.distributions import MultivariateNormal

from ..core.errors import DataError
from .density import Probabilities, as_table
from .divergence import entropy, kl
from .estimate import Estimate
from .gaussian import marginal

__all__ = ["conditional_entropy", "joint_entropy", "mutual_information"]

Joint = MultivariateNormal | Probabilities


def joint_entropy(joint: Joint) -> Estimate:
    """H(X, Y, …) = −Σ p log p over all cells.

    >>> round(joint_entropy([[0.25, 0.25], [0.25, 0.25]]) / np.log(2), 6)
    2.0
    """
    return entropy(joint if isinstance(joint, MultivariateNormal) else as_table(joint, "joint"))


def conditional_entropy(joint: Joint, given: int | Sequence[int] = -1) -> Estimate:
    """H(rest | given) = H(all) − H(given); `given` names axes of a table or coordinates of a Gaussian.

    >>> conditional_entropy([[0.5, 0.0], [0.0, 0.5]])  # each determines the other
    0.0
    """
    known, _ = _parts(joint, given, "given")
    return Estimate(joint_entropy(joint) - joint_entropy(_keep(joint, known)))


def mutual_information(joint: Joint, of: int | Sequence[int] = -1) -> Estimate:
    """I(of; rest) = KL(joint ‖ product of the two marginals): what one part tells of the other. 0 if independent.

    >>> mutual_information([[0.25, 0.25], [0.25, 0.25]])
    0.0
    >>> round(mutual_information([[0.5, 0.0], [0.0, 0.5]]) / np.log(2), 6)  # one bit
    1.0
    """
    part, rest = _parts(joint, of, "of")
    if isinstance(joint, MultivariateNormal):
        together = joint_entropy(_keep(joint, part)) + joint_entropy(_keep(joint, rest))
        return Estimate(together - joint_entropy(joint))
    table = as_table(joint, "joint")
    product = table.sum(part, keepdims=True) * table.sum(rest, keepdims=True)
    return kl(table, product)


def _keep(joint: Joint, axes: tuple[int, ...]) -> Joint:
    """The marginal of some variables."""
    if isinstance(joint, MultivariateNormal):
        return marginal(joint, axes)
    table = as_table(joint, "joint")
    return table.sum(tuple(axis for axis in range(table.ndim) if axis not in axes))


def _parts(joint: Joint, axes: int | Sequence[int], name: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The named axes and the others; neither may be empty."""
    size = joint.event_shape[0] if isinstance(joint, MultivariateNormal) else as_table(joint, "joint").ndim
    chosen = [axes] if isinstance(axes, int | np.integer) else list(axes)
    if any(not -size <= axis < size for axis in chosen) or not 0 < len({axis % size for axis in chosen}) < size:
        raise DataError(f"{name} must name some, not all, of the joint's {size} variables; found {axes!r}.")
    part = tuple(sorted({int(axis) % size for axis in chosen}))
    return part, tuple(axis for axis in range(size) if axis not in part)
