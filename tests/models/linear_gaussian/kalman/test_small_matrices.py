"""Compiled loops over small matrices, against numpy."""

from __future__ import annotations

import numpy as np

from likely.models.linear_gaussian.kalman.small_matrices import (
    add,
    cholesky,
    close,
    fill,
    grown,
    load,
    sandwich,
    store,
)

RANDOM = np.random.default_rng(0)


def test_sandwich_is_the_product_and_symmetric_to_the_last_bit():
    left, middle = RANDOM.normal(size=(3, 4)), RANDOM.normal(size=(4, 4))
    middle = middle + middle.T
    out = np.empty((3, 3))
    sandwich(left, middle, np.empty((3, 4)), out)
    np.testing.assert_allclose(out, left @ middle @ left.T, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(out, out.T)


def test_cholesky_is_that_of_numpy_over_the_first_rows():
    root = RANDOM.normal(size=(4, 5))
    matrix, lower = root @ root.T, np.full((4, 4), 7.0)
    assert cholesky(matrix, lower, 3, 1e-14) == 0
    np.testing.assert_allclose(lower[:3, :3], np.linalg.cholesky(matrix[:3, :3]), rtol=1e-10, atol=1e-12)
    assert (lower[3] == 7.0).all()


def test_a_lost_pivot_has_a_column_of_zeros():
    column = np.array([[1.0], [2.0], [-1.0]])
    lower = np.empty((3, 3))
    assert cholesky(column @ column.T, lower, 3, 1e-13) == 2
    assert not lower[:, 1:].any()
    np.testing.assert_allclose(lower @ lower.T, column @ column.T, rtol=1e-12)


def test_matrices_are_filled_added_stored_and_loaded():
    matrix, table, out = RANDOM.normal(size=(2, 3)), np.zeros((2, 2, 3)), np.empty((2, 3))
    fill(out, 1.5)
    assert (out == 1.5).all()
    add(matrix, out)
    np.testing.assert_array_equal(out, 1.5 + matrix)
    store(matrix, table, 1)
    np.testing.assert_array_equal(table, [np.zeros((2, 3)), matrix])
    load(table, 1, out)
    np.testing.assert_array_equal(out, matrix)
    bigger = grown(table)
    assert bigger.shape == (4, 2, 3)
    np.testing.assert_array_equal(bigger[:2], table)


def test_closeness_is_measured_in_standard_deviations():
    table = np.array([[[1e8, 0.0], [0.0, 1e-8]]])
    moved = table[0] + np.array([[0.0, 1e-9], [1e-9, 0.0]])
    assert close(table, 0, moved, 1e-8)  # of a scale √(1e8 · 1e-8) = 1
    assert not close(table, 0, moved, 1e-10)
    assert not close(table, 0, table[0] + np.diag([0.0, 1e-12]), 1e-8)
    assert not close(table, 0, np.full((2, 2), np.nan), 1.0)
