"""Fingerprints of data: the same for the same rows, different for any change that matters to a resumed fit."""

from __future__ import annotations

import pytest
import torch

from likely.inference.dataset import Dataset
from likely.inference.fingerprint import data_fingerprint

X = torch.randn(7, 3, generator=torch.Generator().manual_seed(0))
Y = torch.randn(7, generator=torch.Generator().manual_seed(1))
WEIGHT = torch.arange(1.0, 8.0)


def fingerprint(x=X, y=Y, weight=WEIGHT):
    return data_fingerprint(Dataset(x, y, weight, torch.float64))


def test_the_same_rows_have_the_same_fingerprint():
    assert fingerprint(X.clone(), Y.clone(), WEIGHT.clone()) == fingerprint()


CHANGES = {
    "a number of x": {"x": X + torch.eye(7, 3) * 1e-3},
    "the order of rows": {"x": X.flip(0)},
    "the order of columns": {"x": X.flip(1)},
    "targets": {"y": -Y},
    "targets of two rows": {"y": Y[[1, 0, 2, 3, 4, 5, 6]]},
    "weights": {"weight": WEIGHT * 2},
    "no weights": {"weight": None},
    "fewer rows": {"x": X[:6], "y": Y[:6], "weight": WEIGHT[:6]},
    "another shape": {"x": X.reshape(7, 1, 3)},
}


@pytest.mark.parametrize("change", CHANGES)
def test_other_rows_have_another(change):
    assert fingerprint(**CHANGES[change]) != fingerprint()


def test_missing_targets_have_a_fingerprint_without_nan():
    gaps = torch.where(Y > 0, Y, torch.nan)
    assert fingerprint(y=gaps) == fingerprint(y=gaps.clone())
    assert all(part == part for part in fingerprint(y=gaps) if isinstance(part, float))
