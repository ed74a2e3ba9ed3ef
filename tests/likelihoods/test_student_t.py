from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from likely.core.errors import SpecError
from likely.likelihoods import Normal, StudentT


def test_agrees_with_scipy(generator):
    eta, y = torch.randn(50, 3, dtype=torch.float64), torch.randn(50, dtype=torch.float64)
    location, scale, df = eta[:, 0].numpy(), eta[:, 1].exp().numpy(), eta[:, 2].exp().numpy()
    expected = stats.t(df, location, scale).logpdf(y.numpy())
    np.testing.assert_allclose(StudentT(df="learned").log_prob(eta, y).numpy(), expected, rtol=1e-10)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("log_df", [30.0, 60.0, 1e3])
def test_many_degrees_of_freedom_are_the_normal(generator, dtype, log_df):
    y = torch.randn(20, dtype=dtype)
    eta = torch.tensor([0.3, 0.2, log_df], dtype=dtype).expand(20, 3)
    for log_prob in (StudentT(df="learned").log_prob(eta, y), StudentT(df="learned").distribution(eta).log_prob(y)):
        torch.testing.assert_close(log_prob, Normal().log_prob(eta[:, :2], y), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("df", "scale", "size", "shared"),
    [(4.0, "learned", 2, 1), ("learned", "learned", 3, 2), ("input", "learned", 3, 1), (4.0, 1.0, 1, 0)],
)
def test_size_counts_what_is_not_known(df, scale, size, shared):
    likelihood = StudentT(df=df, scale=scale)
    target = likelihood.example_target()
    assert (likelihood.size(target), likelihood.shared(target)) == (size, shared)


def test_learned_numbers_stand_last():
    eta = torch.tensor([0.0, 1.0, 2.0])  # location, the network's scale, the learned df
    distribution = StudentT(df="learned", scale="input").distribution(eta)
    torch.testing.assert_close(distribution.scale, torch.tensor(1.0).exp())
    torch.testing.assert_close(distribution.df, torch.tensor(2.0).exp())


def test_an_outlier_does_not_move_the_estimate(generator):
    y = torch.randn(101, dtype=torch.float64)
    y[0] = 1e9
    location, log_scale = StudentT().weighted_mle(y, torch.ones(101, dtype=torch.float64)).tolist()
    assert abs(location) < 0.5
    assert abs(log_scale) < 0.5


@pytest.mark.parametrize("value", [0.0, 5.0, 1e6])
def test_equal_values_have_a_finite_estimate(value):
    for df in (4.0, "learned"):
        estimate = StudentT(df=df).weighted_mle(torch.full((20,), value), torch.ones(20))
        assert estimate[0].item() == value
        assert bool(estimate.isfinite().all())


def test_df_is_checked():
    with pytest.raises(SpecError, match=r"StudentT\(df=-1\): df must be"):
        StudentT(df=-1)
