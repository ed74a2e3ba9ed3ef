"""Running moments are those of all rows at once, in any order of parts; windows double and end before warm-up does."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from likely.sampling.adaptation import Moments, is_window_end

ROWS = torch.randn(60, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) + 1e6


@pytest.mark.parametrize("sizes", [[60], [1] * 60, [7, 50, 3]])
@pytest.mark.parametrize("dense", [True, False])
def test_parts_add_up_to_the_moments_of_all_rows(sizes, dense):
    """Also far from 0, where a difference of sums of squares would have no digit left."""
    moments = Moments.none(ROWS, dense)
    for part in ROWS.split(sizes):
        moments = moments.add(part)
    covariance = np.cov(ROWS.numpy(), rowvar=False)
    expected = covariance if dense else covariance.diagonal()
    assert moments.seen == 60
    np.testing.assert_allclose(moments.mean, ROWS.mean(0), rtol=1e-12)
    np.testing.assert_allclose(moments.scatter / 59, expected, rtol=1e-7, atol=1e-8)


def test_the_root_draws_correlations_towards_zero():
    """Off the diagonal the covariance is multiplied by n / (n + 5d), on it it stays."""
    root = Moments.none(ROWS, dense=True).add(ROWS).factor()
    covariance = np.cov(ROWS.numpy(), rowvar=False)
    expected = np.where(np.eye(3) == 1, covariance, covariance * 60 / (60 + 15))
    np.testing.assert_allclose(root @ root.T, expected, rtol=1e-7, atol=1e-8)


def test_few_rows_give_deviations_alone_and_a_still_coordinate_gives_none():
    deviations = Moments.none(ROWS, dense=True).add(ROWS[:20]).factor()
    np.testing.assert_allclose(deviations, ROWS[:20].numpy().std(0, ddof=1), rtol=1e-7)
    still = ROWS.clone()
    still[:, 1] = 1.0
    assert Moments.none(still, dense=False).add(still).factor() is None


@pytest.mark.parametrize("total", [50, 200, 1000, 3000])
def test_windows_double_and_the_last_ends_at_four_fifths(total):
    ends = [index + 1 for index in range(total) if is_window_end(index, total)]
    assert ends[-1] == int(0.8 * total)
    lengths = np.diff([0, *ends[:-1]])
    assert lengths.tolist() == [20 * 2**k for k in range(len(lengths))]
