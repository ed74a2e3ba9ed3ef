"""Rows between two rows: both ends are what the codes of a and b give back, and one row is one row."""

from __future__ import annotations

import numpy as np
import pytest

from likely import VAE, Flow
from likely.core.errors import DataError
from likely.inference import MAP
from likely.networks import MLP

ROWS = np.random.default_rng(0).normal(size=(40, 2)) @ np.array([[1.0, 0.6], [0.0, 0.5]])
BRIEF = MAP(epochs=2)


def flow():
    return Flow("affine", layers=2, network=MLP((8,)), inference=BRIEF, random_state=0).fit(ROWS)


def vae():
    return VAE(latent=2, encoder=MLP((8,)), decoder=MLP((8,)), inference=BRIEF, random_state=0).fit(ROWS)


@pytest.mark.parametrize("fitted", [flow, vae])
def test_ends_are_the_rows_by_way_of_their_codes(fitted):
    model = fitted()
    way = model.interpolate(ROWS[0], ROWS[1:2], 5)
    ends = model.inverse_transform(model.transform(ROWS[:2]))
    assert way.shape == (5, 2)
    np.testing.assert_allclose(way[[0, -1]], ends, rtol=1e-4, atol=1e-5)
    middle = model.inverse_transform(model.transform(ROWS[:2]).mean(0, keepdims=True))
    np.testing.assert_allclose(way[2:3], middle, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("fitted", [flow, vae])
def test_more_than_one_row_is_refused(fitted):
    with pytest.raises(DataError, match=r"b has shape \(2, 2\); it must be one row, of shape \(2,\)"):
        fitted().interpolate(ROWS[0], ROWS[:2], 3)
