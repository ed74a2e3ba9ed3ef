"""Changed rows come back as what they were: arrays, tensors, frames."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch

from likely import Classifier
from likely.robust import FGSM, attack
from likely.robust.forms import as_numbers, changed_rows, like


def test_rows_come_back_in_their_form(linear, clouds):
    X, y = clouds
    array = attack(linear, X, y, FGSM(0.5)).perturbed
    tensor = attack(linear, torch.from_numpy(X), y, FGSM(0.5)).perturbed
    assert isinstance(tensor, torch.Tensor)
    assert tensor.dtype == torch.float64
    np.testing.assert_array_equal(tensor, array)
    for frames, made in ((pd.DataFrame, {"index": np.arange(90) + 5}), (pl.DataFrame, {})):
        frame = frames(dict(zip("pqrs", X.T, strict=True)), **made)
        model = Classifier(prior="normal(1.0)").fit(frame, y)
        changed = attack(model, frame, y, FGSM(0.5), bounds=(X.min(0), X.max(0))).perturbed
        assert isinstance(changed, frames)
        assert list(changed.columns) == list("pqrs")
        if made:
            np.testing.assert_array_equal(changed.index, frame.index)
        assert (np.abs(changed.to_numpy() - X) <= 0.5 + 1e-9).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_come_back_in_the_dtype_they_had(net, clouds, dtype):
    X = clouds[0].astype(dtype)
    found = attack(net, X, clouds[1], FGSM(0.1))
    assert found.perturbed.dtype == dtype
    assert found.perturbed.shape == X.shape


def test_what_did_not_change_is_what_it_was_to_the_last_digit():
    """float64 rows that a network of float32 was shown, and bounds that it may not leave by rounding."""
    X = np.array([[0.1, 0.2], [0.3, 0.7]])
    x = torch.from_numpy(X).float()
    point = x.clone()
    point[1, 1] += 0.1
    changed = changed_rows(X, x, point, (0.0, np.array([1.0, 0.75])))
    np.testing.assert_array_equal(changed[0], X[0])
    assert changed[1, 0] == 0.3
    assert changed[1, 1] == 0.75


def test_numbers_that_have_no_fractions_get_them():
    rows = np.array([[0.5, 1.5]])
    for X in (np.array([[1, 2]], dtype=np.uint8), torch.tensor([[1, 2]]), [[1, 2]], [[True, False]]):
        np.testing.assert_array_equal(np.asarray(like(X, rows)), rows)
    assert like(np.zeros((1, 2), np.float16), rows).dtype == np.float16
    named = pd.DataFrame([[1, 2]], columns=["a", "b"], index=["first"])
    pd.testing.assert_frame_equal(like(named, rows), pd.DataFrame(rows, columns=["a", "b"], index=["first"]))


def test_what_is_not_numbers_is_told_apart():
    for X in ([["a"]], [[1.0], [1.0, 2.0]], pd.DataFrame({"a": ["x"]}), {"a": [1.0]}):
        assert as_numbers(X) is None
    np.testing.assert_array_equal(as_numbers(torch.ones(1, 2, requires_grad=True)), [[1.0, 1.0]])
    np.testing.assert_array_equal(as_numbers(pl.DataFrame({"a": [1, 2]})), [[1], [2]])
