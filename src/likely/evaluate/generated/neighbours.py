"""Precision, recall, density and coverage: are generated rows among the real ones, and the other way round?

    precision = part of generated rows inside the real rows' k-neighbour balls
    recall    = part of real rows inside the generated rows' balls
    density   = mean number of real balls around a generated row, over k
    coverage  = part of the real balls that hold a generated row

Density and coverage use balls around real rows alone, so one stray generated row cannot raise them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ...core.draws import count_of
from ..result import Result
from .pairs import distances_to, pair_of

__all__ = ["Fidelity", "fidelity"]


@dataclass(frozen=True)
class Fidelity(Result):
    """Four fractions (density may exceed 1): quality by precision and density, variety by recall and coverage."""

    precision: float
    recall: float
    density: float
    coverage: float

    def __str__(self) -> str:
        return (
            f"precision {self.precision:.1%}, recall {self.recall:.1%}, "
            f"density {self.density:.2f}, coverage {self.coverage:.1%}"
        )


def fidelity(real: Any, generated: Any, *, neighbours: int = 5) -> Fidelity:
    """Precision, recall, density and coverage by balls up to the k-th neighbour, on standardised rows.

    >>> rng = np.random.default_rng(0)
    >>> real = rng.normal(size=(500, 2))
    >>> far = fidelity(real, rng.normal(size=(500, 2)) + 20.0)
    >>> far.precision, far.coverage
    (0.0, 0.0)
    """
    k = count_of(neighbours, "neighbours")
    first, second = pair_of(real, generated).in_units()
    real_ball = distances_to(first, first, k, own=True)[:, -1]
    made_ball = distances_to(second, second, k, own=True)[:, -1]
    inside = np.zeros(len(second))
    recalled, held = np.zeros(len(first), dtype=bool), np.zeros(len(first), dtype=bool)
    there = torch.from_numpy(second)
    step = max(1, (1 << 23) // len(second))
    for start in range(0, len(first), step):
        rows = slice(start, start + step)
        gaps = torch.cdist(torch.from_numpy(first[rows]), there).numpy()
        within = gaps <= real_ball[rows, None]
        inside += within.sum(0)
        held[rows] = within.any(1)
        recalled[rows] = (gaps <= made_ball).any(1)
    return Fidelity(float((inside > 0).mean()), float(recalled.mean()), float(inside.mean() / k), float(held.mean()))
