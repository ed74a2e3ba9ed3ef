"""Answers about states come in the form of the sequences: an array for an array, a list for a list."""

from __future__ import annotations

import numpy as np
import pytest

from likely import HiddenMarkov
from likely.core.errors import DataError
from likely.data.rows import Ragged
from likely.likelihoods import Normal

MODEL = HiddenMarkov.from_parameters(Normal(1.0), [0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], [[-3.0], [3.0]])
PARTS = [np.array([[-3.0], [np.nan], [3.0]]), np.array([[3.0], [2.5]])]


@pytest.mark.parametrize("question", ["predict", "predict_proba", "filter", "impute"])
def test_a_list_rows_with_lengths_and_rows_of_any_length_agree(question):
    ask = getattr(MODEL, question)
    listed, joined = ask(PARTS), ask(np.concatenate(PARTS), lengths=[3, 2])
    assert [len(part) for part in listed] == [3, 2]
    np.testing.assert_allclose(np.concatenate(listed), joined, rtol=1e-12)
    for part, own in zip(listed, ask(Ragged.of(PARTS, missing=True)), strict=True):
        np.testing.assert_allclose(own, part, rtol=1e-12)
    np.testing.assert_allclose(ask(PARTS[1]), listed[1], rtol=1e-12)


def test_draws_of_missing_values_are_one_array_for_each_sequence():
    listed, joined = (MODEL.impute(X, 4, 0, lengths=n) for X, n in [(PARTS, None), (np.concatenate(PARTS), [3, 2])])
    assert [part.shape for part in listed] == [(4, 3, 1), (4, 2, 1)]
    assert joined.shape == (4, 5, 1)
    np.testing.assert_allclose(np.concatenate(listed, 1), joined, rtol=1e-12)


def test_steps_ahead_are_counted():
    assert MODEL.forecast_states(PARTS, 4).shape == (2, 4, 2)
    with pytest.raises(DataError, match="steps=0: how far to look ahead must be an integer above 0"):
        MODEL.forecast_states(PARTS, 0)
