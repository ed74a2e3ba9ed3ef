from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from likely.likelihoods import Normal, weighted

PAIRS = st.lists(st.tuples(st.integers(-50, 50), st.integers(1, 4)), min_size=1, max_size=15)


@settings(deadline=None, max_examples=50)
@given(PAIRS)
def test_statistics_are_those_of_repeated_values(pairs):
    y, weight = (torch.tensor(column, dtype=torch.float64) for column in zip(*pairs, strict=True))
    _, share = weighted.clean(Normal(), y, weight)
    repeated = np.repeat(y.numpy(), weight.long().numpy())
    np.testing.assert_allclose(weighted.mean(y, share), [repeated.mean()], atol=1e-12)
    np.testing.assert_allclose(weighted.variance(y, share), [repeated.var()], atol=1e-10)
    np.testing.assert_allclose(weighted.median(y, share), [np.median(repeated)])


def test_each_set_of_weights_has_its_own_median():
    y = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    share = torch.tensor([[1.0, 0.0], [0.0, 0.5], [0.0, 0.5]], dtype=torch.float64)
    assert weighted.median(y, share).tolist() == [1.0, 2.5]


def test_shares_sum_to_one_and_leave_out_what_is_missing():
    y = torch.tensor([1.0, torch.nan, 3.0])
    targets, share = weighted.clean(Normal(), y, torch.tensor([[1.0, 0.0], [5.0, 0.0], [3.0, 0.0]]))
    assert targets.dtype == share.dtype == torch.float64
    assert bool(targets.isfinite().all())
    assert share.tolist() == [[0.25, 0.5], [0.0, 0.0], [0.75, 0.5]]


def test_a_row_of_vanishing_weight_does_not_coarsen_the_spread():
    y = torch.tensor([-1.0, 1.0, 1e12], dtype=torch.float64)
    share = torch.tensor([[0.5], [0.5], [1e-40]], dtype=torch.float64)
    np.testing.assert_allclose(weighted.spread(y, share), [1.0], rtol=1e-9)
