"""Rows of three columns."""

from __future__ import annotations

import pytest


@pytest.fixture
def X(rng):
    return rng.normal(size=(80, 3)) * [1.0, 0.5, 2.0]
