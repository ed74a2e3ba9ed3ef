"""What models of a kernel share: answers are sums over kept rows, and a kernel is a covariance."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from likely import KernelRidge
from likely.core.errors import DataError, TrainingError
from likely.kernels import RBF
from likely.models.kernel import kernel_machine
from likely.models.kernel.kernel_machine import check_covariance, numbers_of

X = np.random.default_rng(0).normal(size=(12, 2))


@pytest.fixture
def model():
    return KernelRidge(RBF(1.3)).fit(X, X[:, 0] ** 2)


@pytest.mark.parametrize("block", [1, 30, 2**19])
def test_answers_are_sums_over_the_rows_that_were_kept(model, monkeypatch, block):
    monkeypatch.setattr(kernel_machine, "BLOCK", block)
    new = np.random.default_rng(1).normal(size=(7, 2))
    kept = getattr(model, model._kept)
    distances = ((new[:, None] - kept[None]) ** 2).sum(-1)
    expected = np.exp(-distances / (2 * 1.3**2)) @ model.dual_coef_
    np.testing.assert_allclose(model._answers(new)[:, 0], expected, rtol=1e-10, atol=1e-12)


def test_the_matrix_of_a_fit_is_symmetric_and_finite(model):
    matrix = model._matrix(torch.from_numpy(X))
    assert torch.equal(matrix, matrix.mT)
    with pytest.raises(DataError, match=r"kernel=RBF\(.*\) has values that are not finite on these rows"):
        model._matrix(torch.from_numpy(X * np.array([1.0, np.nan])))


def test_rows_of_another_shape_are_refused(model):
    with pytest.raises(DataError, match="3 features"):
        model.predict(np.zeros((2, 3)))


def test_a_kernel_that_is_not_a_covariance_is_refused(crossed):
    check_covariance(X @ X.T, "xxᵀ")  # of rank 2 only
    with pytest.raises(TrainingError, match="not positive semidefinite on these rows: its matrix has the eigenvalue -"):
        check_covariance(-X @ X.T, crossed)


def test_numbers_keep_missing_targets_and_refuse_infinite_ones():
    np.testing.assert_array_equal(numbers_of([1, np.nan], 2, "KernelRidge"), [1.0, np.nan])
    np.testing.assert_array_equal(numbers_of(torch.tensor([[1.0, 2.0]]), 1, "KernelRidge"), [[1.0, 2.0]])
    with pytest.raises(DataError, match="y contains infinity at row 1; targets are finite"):
        numbers_of([0.0, np.inf], 2, "KernelRidge")
    with pytest.raises(DataError, match="KernelRidge requires y to be passed"):
        numbers_of(None, 2, "KernelRidge")


def test_too_many_rows_for_this_machine_are_refused():
    with pytest.raises(DataError, match=r"X has 1000000000 rows; KernelRidge needs matrices of rows × rows"):
        kernel_machine._refuse_too_many(10**9, "KernelRidge")
