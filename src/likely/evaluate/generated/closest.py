"""Closest record: do generated rows lie nearer to training rows than other real rows do? Then rows were copied.

    fraction = P( distance to the nearest training row < distance to the nearest held-out row )      ½ for no copying

Training and held-out rows are taken in equal numbers, so that nearest distances are comparable.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import binom

from ...core.random import seed_of
from ..result import Result
from .pairs import distances_to, pair_of

__all__ = ["ClosestRecord", "closest_record"]


@dataclass(frozen=True)
class ClosestRecord(Result):
    """Median distances of generated rows to training and held-out rows, and how often training rows are nearer."""

    to_training: float
    to_held_out: float
    nearer: float
    p_value: float
    """Of so many rows nearer to training ones, if both are equally near."""
    copies: float
    """The fraction of generated rows that are equal to a training row."""

    def __str__(self) -> str:
        return (
            f"{self.nearer:.1%} of rows lie nearer to training than to held-out rows (50 % without copying, "
            f"p = {self.p_value:.2g}); median distances {self.to_training:.3g} and {self.to_held_out:.3g}, "
            f"{self.copies:.1%} copies"
        )


def closest_record(generated: Any, training: Any, held_out: Any, *, random_state: Any = 0) -> ClosestRecord:
    """Distances of generated rows to the nearest training row beside those to the nearest held-out row.

    >>> rng = np.random.default_rng(0)
    >>> train, test = rng.normal(size=(300, 3)), rng.normal(size=(300, 3))
    >>> closest_record(train[:100] + 0.01, train, test).nearer > 0.95
    True
    """
    rng = np.random.default_rng(seed_of(random_state))
    known = pair_of(training, generated, ("training", "generated"))
    unseen = pair_of(training, held_out, ("training", "held_out"))
    size = min(len(known.real), len(unseen.generated))
    both = known._replace(generated=np.concatenate([known.generated, unseen.generated]))
    train, others = both.in_units()
    made, held = others[: len(known.generated)], others[len(known.generated) :]
    train = train[rng.permutation(len(train))[:size]]
    held = held[rng.permutation(len(held))[:size]]
    near, far = (distances_to(made, rows, 1)[:, 0] for rows in (train, held))
    seen = {row.tobytes() for row in known.real}
    ties = near == far
    wins = int((near < far).sum() + rng.binomial(int(ties.sum()), 0.5))
    return ClosestRecord(
        float(np.median(near)),
        float(np.median(far)),
        wins / len(made),
        float(binom.sf(wins - 1, len(made), 0.5)),
        float(np.mean([row.tobytes() in seen for row in known.generated])),
    )
