"""Rows in units far apart, and their targets."""

from __future__ import annotations

import pytest


@pytest.fixture
def data(rng):
    X = rng.normal(size=(40, 3)) * [1.0, 5.0, 0.2] + [0.0, 3.0, 0.0]
    return X, X @ [1.0, -0.3, 2.0] + 0.7 + 0.5 * rng.normal(size=40)
