"""The distribution of several independent targets, column by column.

log p(y) = Σₚ log p(yₚ),   y = (y₁, …, y_P)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Categorical, Distribution, MixtureSameFamily, constraints

__all__ = ["Joint", "JointSupport", "fill", "marginals", "point"]


class Joint(Distribution):
    """Independent marginals, whose values stand side by side along the last axis.

    A NaN in a value means that its marginal was not observed: it does not count in `log_prob`. Labels have no mean:
    in `mean` their column holds the most probable label, in `variance` the probability of any other.

    >>> joint = Joint({"a": torch.distributions.Normal(0.0, 1.0), "b": torch.distributions.Poisson(3.0)})
    >>> joint.mean, joint.marginals["b"].rate
    (tensor([0., 3.]), tensor(3.))
    """

    arg_constraints: dict[str, Any] = {}  # noqa: RUF012  torch's own convention

    def __init__(self, marginals: Mapping[str, Distribution], placeholders: Tensor | float = 1.0) -> None:
        self.marginals = dict(marginals)
        self.placeholders = placeholders
        self.widths = [part.event_shape.numel() for part in self.marginals.values()]
        batch = torch.broadcast_shapes(*(part.batch_shape for part in self.marginals.values()))
        super().__init__(torch.Size(batch), torch.Size([sum(self.widths)]), validate_args=False)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Joint:
        shape = torch.Size(batch_shape)
        return Joint({name: part.expand(shape) for name, part in self.marginals.items()}, self.placeholders)

    @property
    def support(self) -> Any:  # type: ignore[override]
        """Each column in the support of its marginal."""
        return JointSupport([part.support for part in self.marginals.values()], self.widths)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        """Whether all marginals have one."""
        return all(part.has_rsample for part in self.marginals.values())

    @property
    def mean(self) -> Tensor:
        """The means, and the modes of labels."""
        return self.beside([point(part) for part in self.marginals.values()])

    @property
    def mode(self) -> Tensor:
        """The modes."""
        return self.beside([part.mode for part in self.marginals.values()])

    @property
    def variance(self) -> Tensor:
        """The variances, and the probability of not being the mode for labels."""
        return self.beside(
            [
                1 - part.probs.amax(-1) if isinstance(part, Categorical) else part.variance
                for part in self.marginals.values()
            ]
        )

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self.beside([part.sample(torch.Size(sample_shape)) for part in self.marginals.values()])

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.beside([part.rsample(torch.Size(sample_shape)) for part in self.marginals.values()])

    def log_prob(self, value: Tensor) -> Tensor:
        standing = torch.as_tensor(self.placeholders, dtype=value.dtype, device=value.device).expand_as(value)
        total = value.new_zeros(())
        for part, own, stand_in in zip(
            self.marginals.values(), self.columns(value), self.columns(standing), strict=True
        ):
            gone = torch.isnan(own)
            missing = gone.any(-1) if part.event_shape else gone
            filled = torch.where(missing.unsqueeze(-1) if part.event_shape else missing, stand_in, own)
            total = total + torch.where(missing, 0.0, part.log_prob(filled))
        return total

    def columns(self, value: Tensor) -> list[Tensor]:
        """The value of each marginal: a column for numbers and labels, several for vectors."""
        pieces = value.split(self.widths, -1)
        parts = self.marginals.values()
        return [piece if part.event_shape else piece.squeeze(-1) for piece, part in zip(pieces, parts, strict=True)]

    def beside(self, values: Sequence[Tensor]) -> Tensor:
        """The inverse of `columns`."""
        parts = self.marginals.values()
        vectors = [v if part.event_shape else v.unsqueeze(-1) for v, part in zip(values, parts, strict=True)]
        lead = torch.broadcast_shapes(*(v.shape[:-1] for v in vectors))
        return torch.cat([v.expand(*lead, v.shape[-1]) for v in vectors], -1)

    def __repr__(self) -> str:
        return f"Joint({', '.join(f'{name}: {part}' for name, part in self.marginals.items())})"


class JointSupport(constraints.Constraint):
    """Each group of columns inside its own support; a width of None takes what the others leave.

    >>> JointSupport([constraints.real, constraints.positive], [1, 1]).check(torch.tensor([[-1.0, 1.0], [1.0, -1.0]]))
    tensor([ True, False])
    """

    event_dim = 1

    def __init__(self, supports: Sequence[Any], widths: Sequence[int | None]) -> None:
        self.supports, self.widths = supports, widths

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        """Whether all of them are."""
        return all(support.is_discrete for support in self.supports)

    def check(self, value: Tensor) -> Tensor:
        """Whether all columns are inside."""
        inside = torch.ones(value.shape[:-1], dtype=torch.bool, device=value.device)
        for support, piece in zip(self.supports, value.split(fill(self.widths, value.shape[-1]), -1), strict=True):
            allowed = support.check(piece)
            inside = inside & (allowed if support.event_dim else allowed.all(-1))
        return inside


def fill(widths: Sequence[int | None], total: int) -> list[int]:
    """The widths, with what is left of the total for the one that is None.

    >>> fill([1, None], 3)
    [1, 2]
    """
    rest = total - sum(width or 0 for width in widths)
    return [rest if width is None else width for width in widths]


def marginals(distribution: Distribution) -> dict[str, Distribution]:
    """The distribution of each part of a `Joint`, or of a mixture of them (what an average over a posterior is).

    >>> joint = Joint({"a": torch.distributions.Normal(torch.zeros(2), torch.ones(2))})
    >>> mixture = MixtureSameFamily(Categorical(torch.ones(2)), joint)
    >>> marginals(mixture)["a"].mean
    tensor(0.)
    """
    if isinstance(distribution, Joint):
        return dict(distribution.marginals)
    if isinstance(distribution, MixtureSameFamily):
        parts = marginals(distribution.component_distribution)
        weights = distribution.mixture_distribution
        return {name: MixtureSameFamily(weights, part, validate_args=False) for name, part in parts.items()}
    raise TypeError(f"A {type(distribution).__name__} has no marginals by name; a Joint, or a mixture of Joints, has.")


def point(distribution: Distribution) -> Tensor:
    """The best single value: the mean of numbers, the most probable of labels; a mixture is averaged first.

    >>> point(Categorical(torch.tensor([0.2, 0.8])))
    tensor(1)
    """
    if isinstance(distribution, Categorical):
        return distribution.probs.argmax(-1)
    if isinstance(distribution, MixtureSameFamily):
        component = distribution.component_distribution
        if isinstance(component, Categorical):
            weights = distribution.mixture_distribution.probs.unsqueeze(-1)
            return (weights * component.probs).sum(-2).argmax(-1)
        if isinstance(component, Joint):
            return Joint(marginals(distribution)).mean
    return distribution.mean
