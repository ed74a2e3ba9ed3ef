"""How many rows one operation of an inference sees: batches cap them, members and chains multiply them."""

from __future__ import annotations

import pytest

from likely.inference import HMC, MAP, Ensemble
from likely.inference.work import rows_per_step

CASES = [
    (MAP(batch_size=None), 1000, 1000),
    (MAP(batch_size=32), 1000, 32),
    (MAP(batch_size=32), 10, 10),
    (HMC(chains=4), 1000, 4000),
    (Ensemble(5, by=MAP(batch_size=32)), 1000, 160),
    (Ensemble(3, by=HMC(chains=2)), 10, 60),
    (None, 7, 7),
]


@pytest.mark.parametrize(("inference", "rows", "expected"), CASES, ids=lambda value: repr(value))
def test_rows_are_copies_times_a_batch(inference, rows, expected):
    assert rows_per_step(inference, rows) == expected
