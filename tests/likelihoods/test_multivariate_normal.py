from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from likely.core.errors import DataError, SpecError
from likely.likelihoods import MultivariateNormal, Normal, Target


@pytest.mark.parametrize("d", [1, 2, 4])
def test_agrees_with_scipy(generator, d):
    size = MultivariateNormal().size(Target(shape=(d,)))
    assert size == d + d * (d + 1) // 2
    eta, y = torch.randn(size, dtype=torch.float64), torch.randn(20, d, dtype=torch.float64)
    covariance = MultivariateNormal().distribution(eta).covariance_matrix
    expected = stats.multivariate_normal(eta[:d].numpy(), covariance.numpy()).logpdf(y.numpy())
    np.testing.assert_allclose(MultivariateNormal().log_prob(eta.expand(20, size), y).numpy(), expected, rtol=1e-9)


def test_without_correlation_it_is_normals(generator):
    eta, y = torch.randn(20, 5, dtype=torch.float64), torch.randn(20, 2, dtype=torch.float64)
    eta[:, 4] = 0
    parts = [Normal().log_prob(eta[:, [j, 2 + j]], y[:, j]) for j in range(2)]
    torch.testing.assert_close(MultivariateNormal().log_prob(eta, y), parts[0] + parts[1])


def test_estimate_is_the_sample_covariance(generator):
    y = torch.randn(100, 3, dtype=torch.float64) @ torch.randn(3, 3, dtype=torch.float64) * 1e3 + 5
    weight = torch.rand(100, dtype=torch.float64)
    distribution = MultivariateNormal().distribution(MultivariateNormal().weighted_mle(y, weight))
    expected = np.cov(y.numpy().T, aweights=weight.numpy(), ddof=0)
    np.testing.assert_allclose(distribution.covariance_matrix.numpy(), expected, rtol=1e-6)
    np.testing.assert_allclose(distribution.mean.numpy(), np.average(y.numpy(), 0, weight.numpy()), rtol=1e-9)


def test_collinear_and_constant_columns_have_a_finite_estimate(generator):
    x = torch.randn(50)
    y = torch.stack([x, 2 * x, torch.full_like(x, 3.0)], -1)
    offset, unit = MultivariateNormal().baseline(y, torch.ones(50))
    assert bool(offset.isfinite().all())
    assert bool((unit > 0).all())
    assert bool(MultivariateNormal().log_prob(offset.expand(50, -1), y).isfinite().all())


def test_change_of_unit_moves_only_means_and_scales(generator):
    y, weight = torch.randn(50, 3, dtype=torch.float64), torch.ones(50, dtype=torch.float64)
    (small, _), (large, unit) = MultivariateNormal().baseline(y, weight), MultivariateNormal().baseline(1e3 * y, weight)
    torch.testing.assert_close(large[:3], 1e3 * small[:3])
    torch.testing.assert_close(large[3:6], small[3:6] + np.log(1e3))
    torch.testing.assert_close(large[6:], small[6:])
    torch.testing.assert_close(unit[:3], 1e3 * y.std(0, correction=0))


def test_shared_only_if_learned():
    target = Target(shape=(3,))
    assert MultivariateNormal().shared(target) == 6
    assert MultivariateNormal(covariance="input").shared(target) == 0


def test_messages():
    with pytest.raises(
        DataError, match=r"y has shape \(3,\); MultivariateNormal needs vectors: an array of shape \(n, d\)"
    ):
        MultivariateNormal().check(torch.zeros(3))
    with pytest.raises(DataError, match=r"MultivariateNormal\(dim=2\) needs vectors of 2 numbers"):
        MultivariateNormal(dim=2).check(torch.zeros(4, 3))
    with pytest.raises(DataError, match=r"y has an infinite value \(inf at row 1\)"):
        MultivariateNormal().check(torch.tensor([[0.0, 1.0], [2.0, torch.inf]]))
    with pytest.raises(SpecError, match='covariance must be "learned" or "input"'):
        MultivariateNormal(covariance="full")
    with pytest.raises(SpecError, match="dim must be an integer above 0, or None"):
        MultivariateNormal(dim=0)
