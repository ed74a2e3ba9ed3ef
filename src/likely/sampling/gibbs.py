"""Gibbs sampling: one block of coordinates after another, each drawn given all the others.

    xᵢ ~ p(xᵢ | x₋ᵢ) ∝ p(x₁, …, x_d)

A block is drawn from the conditional that a person knows; a coordinate of finite support from its probabilities,
found by trying every value; any other coordinate by a slice step, which leaves the conditional invariant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.distributions import Distribution

from ..core.errors import DataError, SpecError
from ..core.random import isolated
from ..core.spec import require
from .density import LogDensity, draw, log_prob_of, shown
from .sampler import Info, Sampler, State
from .slice import slice_step

__all__ = ["Gibbs"]

Conditional = Callable[[Tensor], Distribution]


class Gibbs(Sampler):
    """Gibbs(): a sweep over all coordinates for any log-density, numbered as in the flattened position.

    `conditionals` gives what is known: `{0: f, (1, 2): g}`, or a list with one for each coordinate; each function
    takes the positions (chains, *event) and gives the distribution of its block in every chain. `supports` gives the
    values of discrete coordinates: `{3: (0, 1, 2)}`, or one tuple of values for all without a conditional. What is
    in neither is continuous, and moves by slice steps whose widths warm-up tunes.

    >>> from likely.sampling import sample
    >>> def spins(x):  # two spins that like to agree: p ∝ exp(x₀·x₁)
    ...     return x[:, 0] * x[:, 1]
    >>> chains = sample(spins, [1, 1], Gibbs(supports=(-1, 1)), random_state=0)
    >>> agree = (chains.draws[..., 0] == chains.draws[..., 1]).double().mean()
    >>> bool((agree - 1 / (1 + torch.tensor(-2.0).exp())).abs() < 0.03)
    True
    """

    conditionals: Any = None
    supports: Any = None

    def validate(self) -> None:
        rules = self.conditionals
        functions = rules.values() if isinstance(rules, Mapping) else rules or ()
        fine = isinstance(rules, Mapping | tuple | None) and all(callable(f) for f in functions)
        require(fine, self, "conditionals", "None, functions by coordinate or block, or a list of them")
        values = self.supports
        lists = values.values() if isinstance(values, Mapping) else (values or (),)
        fine = isinstance(values, Mapping | tuple | None) and all(isinstance(entries, tuple) for entries in lists)
        require(fine, self, "supports", "None, a tuple of values, or tuples of values by coordinate")

    def init(self, position: Tensor, log_prob: LogDensity) -> State:
        sweep = self._sweep(position)
        state = State(position, log_prob(position), sweep)
        flat = position.reshape(len(position), -1)
        for coordinate, values in sweep.supports.items():
            known = torch.isin(flat[:, coordinate], values)
            if not bool(known.all()):
                outside, listed = flat[:, coordinate][~known][0].item(), values.tolist()
                raise DataError(f"initial has {outside:g} at coordinate {coordinate}; its support is {listed}.")
        for block, conditional in sweep.conditionals.items():
            _check_conditional(state, log_prob, block, conditional)
        return state

    def step(self, state: State, log_prob: LogDensity, generator: torch.Generator) -> tuple[State, Info]:
        sweep: Sweep = state.tuning
        x, current = state.position, state.log_prob
        for block, conditional in sweep.conditionals.items():
            x = _with(x, block, draw(_given(conditional, x, block), generator))
        if sweep.conditionals:
            current = log_prob(x)
            if not bool((current > -torch.inf).all()):
                position = shown(x[int((current == -torch.inf).nonzero()[0])])
                raise DataError(f"conditionals led to {position}, where log_prob is −inf; they do not belong together.")
        for coordinate, values in sweep.supports.items():
            x, current = _enumerate(x, current, coordinate, values, log_prob, generator)
        for coordinate in sweep.slices:
            here, width = x.reshape(len(x), -1)[:, coordinate], sweep.widths[coordinate]

            def along(value: Tensor, x: Tensor = x, coordinate: int = coordinate) -> Tensor:
                return log_prob(_with(x, (coordinate,), value))

            value, current = slice_step(along, here, current, width, generator)
            x = _with(x, (coordinate,), value)
        gap = (x - state.position).reshape(len(x), -1).double().abs()
        acceptance = torch.ones(len(x), dtype=torch.float64, device=x.device)
        return replace(state, position=x, log_prob=current), Moved(acceptance, gap=gap)

    def adapt(self, state: State, info: Info, index: int, total: int) -> State:
        """A draw from a slice of length w moves by w/3 in the mean, whatever the width was: so the width is learned."""
        sweep: Sweep = state.tuning
        if not sweep.slices or not isinstance(info, Moved):
            return state
        rate = max(1 / (index + 2), 0.02)
        widths = (1 - rate) * sweep.widths + rate * 3 * info.gap.mean(0)
        return replace(state, tuning=sweep._replace(widths=widths.clamp_min(torch.finfo(widths.dtype).tiny)))

    def _sweep(self, position: Tensor) -> Sweep:
        """Who draws what: every coordinate belongs to one rule."""
        size = position[0].numel()
        conditionals: dict[tuple[int, ...], Conditional] = {}
        given = self.conditionals or {}
        for key, conditional in given.items() if isinstance(given, Mapping) else enumerate(given):
            conditionals[key if isinstance(key, tuple) else (key,)] = conditional
        taken = [coordinate for block in conditionals for coordinate in block]
        free = [coordinate for coordinate in range(size) if coordinate not in taken]
        listed = self.supports if isinstance(self.supports, Mapping) else dict.fromkeys(free, self.supports or ())
        supports = {c: torch.tensor(values, dtype=position.dtype) for c, values in listed.items() if values}
        named = [*taken, *supports]
        for coordinate in named:
            if coordinate not in range(size):
                raise SpecError(f"Gibbs names the coordinate {coordinate!r}; positions have 0 to {size - 1}.")
            if named.count(coordinate) > 1:
                raise SpecError(f"Gibbs has two rules for coordinate {coordinate}; one of them is enough.")
        slices = [coordinate for coordinate in free if coordinate not in supports]
        if slices and not position.is_floating_point():
            raise DataError(
                f"Coordinate {slices[0]} of positions that are integers has neither a conditional nor a support; "
                "give its values to Gibbs(supports=…)."
            )
        return Sweep(conditionals, supports, slices, torch.ones(size, dtype=torch.float64, device=position.device))


class Sweep(NamedTuple):
    """The rule of every coordinate, and the widths (d,) of the slice steps."""

    conditionals: dict[tuple[int, ...], Conditional]
    supports: dict[int, Tensor]
    slices: list[int]
    widths: Tensor


@dataclass(frozen=True)
class Moved(Info):
    """With how far each coordinate went, (chains, d)."""

    gap: Tensor = field(default_factory=lambda: torch.zeros(0))


def _enumerate(
    x: Tensor, current: Tensor, coordinate: int, values: Tensor, log_prob: LogDensity, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """A draw of one coordinate from its finite conditional. The present value's log-density is known already."""
    index = (x.reshape(len(x), -1)[:, coordinate, None] == values).long().argmax(1)
    ways = [values[(index + k) % len(values)] for k in range(len(values))]
    logs = torch.stack([current, *(log_prob(_with(x, (coordinate,), way)) for way in ways[1:])])
    chosen = torch.multinomial(logs.softmax(0).T, 1, generator=generator)[:, 0]
    value = torch.stack(ways).gather(0, chosen[None])[0]
    return _with(x, (coordinate,), value), logs.gather(0, chosen[None])[0]


def _with(x: Tensor, block: tuple[int, ...], value: Tensor) -> Tensor:
    """The positions with new values (chains, …) in some coordinates."""
    flat = x.reshape(len(x), -1).clone()
    if len(block) == 1:
        flat[:, block[0]] = value.reshape(len(x))
    else:
        flat[:, list(block)] = value.reshape(len(x), len(block)).to(x.dtype)
    return flat.reshape(x.shape)


def _given(conditional: Conditional, x: Tensor, block: tuple[int, ...]) -> Distribution:
    distribution = conditional(x)
    if not isinstance(distribution, Distribution):
        raise DataError(
            f"conditionals[{_key(block)}] must give a torch distribution; it gave {type(distribution).__name__}."
        )
    shape = distribution.batch_shape + distribution.event_shape
    if shape[:1] != (len(x),) or shape.numel() != len(x) * len(block):
        raise DataError(
            f"conditionals[{_key(block)}] gave a distribution of shape {tuple(shape)}; it must give {len(block)} "
            f"number{'s' * (len(block) > 1)} for each of the {len(x)} chains."
        )
    return distribution


def _check_conditional(state: State, log_prob: LogDensity, block: tuple[int, ...], conditional: Conditional) -> None:
    """A move of a block changes the log-density of the joint and of the conditional alike, or they do not belong."""
    x = state.position
    given = _given(conditional, x, block)
    with isolated(0), torch.no_grad():
        new = given.sample()
    old = x.reshape(len(x), -1)[:, list(block)].reshape(new.shape).to(new.dtype)
    try:
        own = (log_prob_of(given, new) - log_prob_of(given, old)).reshape(len(x), -1).sum(1)
    except NotImplementedError:  # a conditional that can only be drawn from
        return
    joint = log_prob(_with(x, block, new)) - state.log_prob
    wrong = ~((joint - own).abs() <= 1e-3 * (1 + joint.abs() + own.abs()))
    if bool(wrong.any()):
        row = int(wrong.nonzero()[0])
        raise DataError(
            f"conditionals[{_key(block)}] does not belong to log_prob: from {shown(old[row])} to {shown(new[row])} its "
            f"log-density changes by {own[row].item():.4g}, log_prob by {joint[row].item():.4g}."
        )


def _key(block: tuple[int, ...]) -> Any:
    return block[0] if len(block) == 1 else block
