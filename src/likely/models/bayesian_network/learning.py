"""The edges of a Bayesian network from a table: its columns are the variables, its rows without gaps the data."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...core.errors import DataError, LikelyWarning
from ...core.spec import as_spec
from .dag import Dag
from .structure import HillClimbing, Structure
from .structure.sample import Sample

__all__ = ["learn_dag"]

MOST = 256
"""States of a variable; a column with more is hardly meant as one."""
MOST_NUMBERS = 50
"""States that are numbers: with more of them a column is a quantity, of which each value has too few rows."""


def learn_dag(
    structure: Structure | str,
    states: Mapping[str, Sequence[Any]],
    codes: np.ndarray,
    weight: np.ndarray,
    random: np.random.Generator,
) -> Dag:
    """The graph that the structure finds among variables, from rows of codes in the order of `states`."""
    how = HillClimbing() if structure == "auto" else as_spec(structure, Structure, "structure")
    _check_few(states)
    whole: np.ndarray = np.all(codes >= 0, axis=1)
    if not whole[weight > 0].any():
        raise DataError("Edges are learned from rows without gaps, and there is none; give edges, or fill the gaps.")
    if not whole.all():
        warnings.warn(
            f"The edges are learned from the {int(whole.sum())} of {len(whole)} rows that have no gaps.",
            LikelyWarning,
            stacklevel=3,
        )
    names = list(states)
    sample = Sample.of(names, codes[whole], weight[whole], [len(own) for own in states.values()])
    return Dag.from_edges([*names, *((names[parent], names[child]) for parent, child in how.learn(sample, random))])


def _check_few(states: Mapping[str, Sequence[Any]]) -> None:
    """Raise one error for all columns that have more values than a variable has states."""
    numbers = {name: type(own[0]) in (int, float) for name, own in states.items()}
    many = [name for name, own in states.items() if len(own) > (MOST_NUMBERS if numbers[name] else MOST)]
    if not many:
        return
    counted = ", ".join(f"{name!r} ({len(states[name])} different values)" for name in many[:4])
    counted += f" and {len(many) - 4} others" * (len(many) > 4)
    quantity = next((name for name in many if numbers[name]), None)
    cut = f"cut numbers into ranges (pandas.qcut(frame[{quantity!r}], 5).astype(str) gives five of equal size)"
    remedies = ["leave them out (--ignore on the command line)", *([cut] if quantity else ["group their values"])]
    raise DataError(
        f"A variable of a Bayesian network has a few states; {counted} {'has' if len(many) == 1 else 'have'} too many: "
        f"{', or '.join(remedies)}."
    )
