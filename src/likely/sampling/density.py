"""Log-densities as samplers ask for them: known up to a constant, one number per row, −∞ where there is no mass.

    log_prob: (n, *event) → (n,)

What a person gives is a function of rows or a torch distribution. Each answer is checked once, here, so that a NaN is
an error with a position rather than a chain that never moves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution

from ..core.errors import DataError
from ..core.random import isolated, seed_of

__all__ = [
    "Density",
    "LogDensity",
    "as_generator",
    "as_log_density",
    "as_real",
    "draw",
    "integer",
    "log_prob_of",
    "shown",
]

LogDensity = Callable[[Tensor], Tensor]
"""A function from rows (n, *event) to the log-density of each (n,), up to a constant."""


@dataclass(frozen=True)
class Density:
    """A log-density as samplers ask for it: called, it raises a `DataError` for NaN, +∞ and wrong shapes.

    `unchecked` answers as it can, for methods that may reach extreme positions and take NaN as no mass;
    `value_and_grad` is that of a function that knows its own gradient.
    """

    checked: LogDensity
    unchecked: LogDensity
    value_and_grad: Callable[[Tensor], tuple[Tensor, Tensor]] | None = None

    def __call__(self, rows: Tensor) -> Tensor:
        return self.checked(rows)


def as_log_density(target: LogDensity | Distribution, name: str) -> Density:
    """The function that answers for `target`, with its answers checked."""
    if isinstance(target, Distribution):
        function = _of_distribution(target, name)
    elif callable(target):
        function = target
    else:
        raise DataError(
            f"{name} must be a function of rows (n, …) that gives n log-densities, or a torch distribution; "
            f"found {type(target).__name__}."
        )

    def asked(rows: Tensor) -> Tensor:
        try:
            return function(rows)
        except ValueError as error:
            raise DataError(
                f"{name} refused the rows that begin with {shown(rows[0])}; it must give −inf where there is no mass, "
                f"as a torch distribution given as {name} itself does. What it said: {error}"
            ) from error

    def checked(rows: Tensor) -> Tensor:
        values = asked(rows)
        if not isinstance(values, Tensor) or values.shape != rows.shape[:1]:
            shape = f"shape {tuple(values.shape)}" if isinstance(values, Tensor) else type(values).__name__
            raise DataError(
                f"{name} must give one number for each of the {len(rows)} rows, a tensor of shape ({len(rows)},); it "
                f"gave {shape} for rows of shape {tuple(rows.shape)}. Sum over all axes but the first."
            )
        if not bool((values < torch.inf).all()):  # NaN fails as well
            row = int((~(values < torch.inf)).nonzero()[0])
            raise DataError(
                f"{name} is {values[row].item()} at {shown(rows[row])} (row {row}); a log-density is finite, or −inf "
                "where there is no mass."
            )
        return values.double()

    def unchecked(rows: Tensor) -> Tensor:
        with _unvalidated():
            return asked(rows)

    return Density(checked, unchecked, getattr(function, "value_and_grad", None))


def as_generator(random_state: Any, device: torch.device | str = "cpu") -> torch.Generator:
    """A generator of its own from a seed (see `likely.core.random.seed_of`); a `torch.Generator` is used as it is."""
    if isinstance(random_state, torch.Generator):
        return random_state
    return torch.Generator(device=device).manual_seed(seed_of(random_state))


def as_real(values: Tensor) -> Tensor:
    """Real numbers in float64, whole ones in int64."""
    return values.double() if values.is_floating_point() or values.dtype == torch.bool else values.long()


def draw(distribution: Distribution, generator: torch.Generator, count: int | None = None) -> Tensor:
    """`count` draws (one of each in a batch without it) that depend on `generator` alone.

    torch's distributions know the global random state only; it is lent to them and put back.
    """
    seed = int(torch.randint(2**62, (), generator=generator, device=generator.device))
    with isolated(seed), torch.no_grad():
        return distribution.sample(torch.Size([] if count is None else [count]))


def integer(value: Any, name: str, least: int) -> int:
    """An integer of at least `least`, or an error that names the argument."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise DataError(f"{name} must be an integer of {least} or more; found {value!r}.")
    return value


def shown(row: Tensor) -> str:
    """A position in a message: its first numbers."""
    numbers = [f"{number:.6g}" for number in row.detach().flatten()[:5].tolist()]
    if row.ndim == 0:
        return numbers[0]
    return f"[{', '.join(numbers)}{', …' if row.numel() > 5 else ''}]"


def log_prob_of(distribution: Distribution, rows: Tensor) -> Tensor:
    """log p of each row in float64, −∞ outside the support, where torch raises or answers nonsense."""
    try:
        possible = distribution.support.check(rows)  # type: ignore[union-attr]
    except NotImplementedError:  # a distribution that does not say its support answers everywhere
        return distribution.log_prob(rows).double()
    if bool(possible.all()):
        return distribution.log_prob(rows).double()
    with isolated(0), torch.no_grad():
        inside = distribution.sample().to(rows.dtype)
    mask = possible.reshape(possible.shape + (1,) * len(distribution.event_shape))
    return torch.where(possible, distribution.log_prob(torch.where(mask, rows, inside)).double(), -torch.inf)


@contextmanager
def _unvalidated() -> Iterator[None]:
    """Distributions that are made inside give NaN for parameters or values that will not do, instead of raising."""
    before = Distribution._validate_args
    Distribution.set_default_validate_args(False)
    try:
        yield
    finally:
        Distribution.set_default_validate_args(before)


def _of_distribution(distribution: Distribution, name: str) -> LogDensity:
    batch = tuple(distribution.batch_shape)
    if batch:
        raise DataError(
            f"{name} is a batch of {batch} distributions; join them into one with "
            f"torch.distributions.Independent(…, {len(batch)})."
        )
    return lambda rows: log_prob_of(distribution, rows)
