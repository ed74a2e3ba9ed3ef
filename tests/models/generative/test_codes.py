"""Codes of a flow: the argument and the verb, ensembles, and what has no code."""

from __future__ import annotations

import numpy as np
import pytest

from likely import Flow
from likely.core.errors import DataError
from likely.inference import MAP, Ensemble
from likely.models.generative import base
from likely.networks import MLP

ROWS = np.random.default_rng(0).normal(size=(40, 3)) * np.array([1.0, 10.0, 0.1])
BRIEF = MAP(epochs=2)


def fitted(X=ROWS, inference=BRIEF):
    return Flow("affine", layers=2, network=MLP((8,)), inference=inference, random_state=0).fit(X)


def test_codes_of_the_weightiest_member_lead_back():
    model = fitted(inference=Ensemble(2, by=MAP(epochs=2)))
    np.testing.assert_allclose(model.inverse_transform(model.transform(ROWS)), ROWS, rtol=1e-3, atol=1e-4)


def test_a_trajectory_starts_near_the_rows_and_ends_at_their_codes():
    model = fitted()
    way = model.trajectory(ROWS[:5])
    assert way.shape[1:] == (5, 3)
    np.testing.assert_allclose(way[-1], model.transform(ROWS[:5]), rtol=1e-5, atol=1e-6)


def test_labels_have_no_code():
    table = np.column_stack([ROWS[:, 0], ROWS[:, 1] > 0])
    with pytest.raises(DataError, match=r"transform speaks of numbers; .* has labels, which have no code"):
        fitted(table).transform(table)


def test_blocks_give_the_codes_of_the_whole(monkeypatch):
    model = fitted()

    def answers():
        yield model.transform(ROWS)
        yield model.inverse_transform(ROWS)
        yield model.trajectory(ROWS)

    whole = list(answers())
    monkeypatch.setattr(base, "BLOCK", 1)  # blocks of 16 rows, and a last one of 8
    for answer, expected in zip(answers(), whole, strict=True):
        np.testing.assert_allclose(answer, expected, rtol=1e-4, atol=1e-5)
