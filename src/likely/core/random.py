"""Seeds: the same `random_state` on the same machine gives the same bits, and torch's global state stays untouched."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from sklearn.utils import check_random_state

from .errors import SpecError

__all__ = ["isolated", "seed_of", "spread"]


def seed_of(random_state: Any) -> int:
    """One integer seed from an int, a numpy `RandomState` or `Generator`, or None (a new one each time).

    >>> seed_of(0) == seed_of(0)
    True
    """
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31 - 1))
    try:
        return int(check_random_state(random_state).randint(2**31 - 1))
    except ValueError as error:
        raise SpecError(
            f"random_state={random_state!r} is no seed; use a whole number from 0 to 2**32 − 1, "
            "a numpy RandomState or Generator, or None."
        ) from error


def spread(seed: int, count: int) -> list[int]:
    """`count` independent seeds from one; the first ones do not depend on how many are asked for."""
    return [int(child.generate_state(1)[0]) for child in np.random.SeedSequence(seed).spawn(count)]


@contextmanager
def isolated(seed: int) -> Iterator[None]:
    """Torch's global random state is `seed` inside, and what it was before after."""
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.default_generator.manual_seed(seed)  # torch.manual_seed asks every kind of device, at 2 ms a time
        if torch.cuda.is_available():
            torch.cuda.manual_seed_all(seed)
        yield
