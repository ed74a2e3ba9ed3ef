"""Ancestral sampling of a directed model: each variable after its parents.

p(x₁, …, x_d) = Πᵢ p(xᵢ | parents of xᵢ)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any

from torch import Tensor
from torch.distributions import Distribution

from ..core.errors import DataError
from .density import as_generator, draw, integer

__all__ = ["ancestral"]


def ancestral(
    model: Mapping[str, Distribution | Callable[..., Distribution]], n: int, random_state: Any = None
) -> dict[str, Tensor]:
    """n joint draws, a tensor (n, …) for each variable, in the order of `model`.

    A variable is a torch distribution, or a function whose arguments are named after its parents and that gives its
    distribution once they are known: each parent is a tensor (n, …), the answer a batch of n. The order of the
    entries does not matter.

    >>> from torch.distributions import Bernoulli, Normal
    >>> model = {"rain": Bernoulli(0.2), "wet": lambda rain: Bernoulli(0.1 + 0.8 * rain)}
    >>> draws = ancestral(model, 10_000, random_state=0)
    >>> bool((draws["wet"].mean() - (0.8 * 0.1 + 0.2 * 0.9)).abs() < 0.02)
    True
    """
    count, generator = integer(n, "n", 1), as_generator(random_state)
    parents = {name: _parents(name, part) for name, part in model.items()}
    for name, own_parents in parents.items():
        for parent in own_parents:
            if parent not in model:
                raise DataError(f"model[{name!r}] has the parent {parent!r}, which is not a variable of the model.")
    try:
        order = list(TopologicalSorter(parents).static_order())
    except CycleError as error:
        raise DataError(
            f"model has a cycle: {' → '.join(error.args[1])}; no variable of it can be drawn first."
        ) from error
    draws: dict[str, Tensor] = {}
    for name in order:
        part = model[name]
        if isinstance(part, Distribution):
            draws[name] = draw(part, generator, count)
            continue
        given = part(**{parent: draws[parent] for parent in parents[name]})
        if not isinstance(given, Distribution):
            raise DataError(f"model[{name!r}] must give a torch distribution; it gave {type(given).__name__}.")
        if not parents[name]:
            draws[name] = draw(given, generator, count)
        elif given.batch_shape[:1] == (count,):
            draws[name] = draw(given, generator)
        else:
            raise DataError(
                f"model[{name!r}] gave a distribution of batch shape {tuple(given.batch_shape)}; it must begin with "
                f"the {count} draws of its parents."
            )
    return {name: draws[name] for name in model}


def _parents(name: str, part: Any) -> list[str]:
    """The names of the arguments that a variable's function must be given."""
    if isinstance(part, Distribution):
        return []
    if not callable(part):
        raise DataError(f"model[{name!r}] must be a torch distribution or a function of its parents; found {part!r}.")
    asked = inspect.signature(part).parameters.values()
    odd = [p.name for p in asked if p.kind in (p.POSITIONAL_ONLY, p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if odd:
        raise DataError(f"model[{name!r}] takes {odd[0]!r} without a name; name each parent as an argument.")
    return [p.name for p in asked if p.default is p.empty]
