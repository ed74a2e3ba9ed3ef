"""What all methods of structure learning share: the axis, and the edges that must be there or must not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....core.errors import SpecError
from ....core.spec import Spec, require
from ..dag import Dag, closest
from .sample import Sample

__all__ = ["Limits", "Structure"]

Edge = tuple[int, int]


class Structure(Spec, axis="structure"):
    """A way to learn the edges of a `BayesianNetwork` from complete rows.

    All ways take `required` and `forbidden` edges, pairs (parent, child) of names. A forbidden pair forbids this
    direction; forbid both to keep two variables apart.

    >>> Structure.parse("pc(alpha=0.05)")
    PC(alpha=0.05)
    """

    def learn(self, sample: Sample, random: np.random.Generator) -> list[Edge]:
        """The edges (parent, child), as positions in `sample.names`."""
        raise NotImplementedError(f"{type(self).__name__} must learn edges")

    def validate(self) -> None:
        for name in ("required", "forbidden"):
            pairs = getattr(self, name)
            sound = isinstance(pairs, Sequence) and not isinstance(pairs, str) and all(map(_is_edge, pairs))
            require(sound, self, name, 'a list of pairs (parent, child) of names, such as [("rain", "wet")]')

    def limits(self, names: Sequence[str]) -> Limits:
        """The required and forbidden edges as matrices, or an error that names a variable that is not there."""
        own: dict[str, Any] = {name: getattr(self, name) for name in ("required", "forbidden")}
        place = {name: position for position, name in enumerate(names)}
        marked = {name: np.zeros((len(names), len(names)), bool) for name in own}
        for argument, pairs in own.items():
            for pair in pairs:
                for name in pair:
                    if name not in place:
                        hint = closest(name, names)
                        raise SpecError(f"{type(self).__name__}({argument}=…) names {name!r}, no variable.{hint}")
                marked[argument][place[pair[0]], place[pair[1]]] = True
        both = np.argwhere(marked["required"] & marked["forbidden"])
        if len(both):
            parent, child = (names[position] for position in both[0])
            raise SpecError(f"{type(self).__name__}: {parent} → {child} is required and forbidden; drop one of them.")
        if marked["required"].any():
            _ = Dag.from_edges([*names, *dict.fromkeys(map(tuple, own["required"]))])  # a cycle is refused here
        allowed = ~marked["forbidden"] & ~marked["required"].T & ~np.eye(len(names), dtype=bool)
        return Limits(marked["required"], allowed)


@dataclass(frozen=True)
class Limits:
    """Matrices [parent, child]: the edges that must be there, and those that may."""

    required: np.ndarray
    allowed: np.ndarray


def _is_edge(pair: Any) -> bool:
    return (
        isinstance(pair, Sequence)
        and not isinstance(pair, str)
        and len(pair) == 2
        and all(isinstance(name, str) for name in pair)
        and pair[0] != pair[1]
    )
