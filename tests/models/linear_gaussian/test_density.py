"""The density x = Wz + μ + ε against the joint Gaussian of (z, x), inverted as a whole."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from likely.core.errors import DataError
from likely.models.linear_gaussian.density import LinearGaussian


def made(seed, columns, factors, *, isotropic=False):
    random = np.random.default_rng(seed)
    noise = np.full(columns, 0.7) if isotropic else random.uniform(0.2, 1.5, columns)
    parts = random.normal(size=(columns, factors)), random.normal(size=columns), noise
    return LinearGaussian(*map(torch.from_numpy, parts))


def with_holes(x, seed, fraction=0.3):
    holes = torch.from_numpy(np.random.default_rng(seed).random(tuple(x.shape)) < fraction)
    return torch.where(holes, torch.nan, x)


def by_inversion(model, row):
    """log p(x), E[z | x], Cov[z | x] and E[x | known x] from the joint covariance of the known columns."""
    known = ~np.isnan(row)
    loadings, mean, covariance = model.loadings.numpy(), model.mean.numpy(), model.covariance().numpy()
    inverse = np.linalg.inv(covariance[np.ix_(known, known)])
    gain = loadings[known].T @ inverse
    rest = row[known] - mean[known]
    log_prob = multivariate_normal(mean[known], covariance[np.ix_(known, known)]).logpdf(row[known])
    filled = mean + covariance[:, known] @ inverse @ rest
    return log_prob, gain @ rest, np.eye(loadings.shape[1]) - gain @ loadings[known], np.where(known, row, filled)


@given(st.integers(0, 2**31), st.integers(1, 6), st.integers(1, 4))
def test_answers_are_those_of_the_joint_gaussian(seed, columns, factors):
    model = made(seed, columns, factors)
    x = with_holes(model.sample(8, seed), seed)
    x[:, 0] = torch.where(x.isnan().all(1), 0.5, x[:, 0])
    log_prob, (mean, root), filled = model.log_prob(x), model.posterior(x), model.impute(x)
    root = root.expand(8, factors, factors)
    for i, row in enumerate(x.numpy()):
        expected = by_inversion(model, row)
        np.testing.assert_allclose(log_prob[i], expected[0], rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(mean[i], expected[1], rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(root[i] @ root[i].T, expected[2], rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(filled[i], expected[3], rtol=1e-8, atol=1e-8)


def test_a_row_without_values_has_the_prior():
    model = made(0, 3, 2)
    x = torch.full((1, 3), torch.nan).double()
    mean, root = model.posterior(x)
    assert model.log_prob(x).tolist() == [0.0]
    np.testing.assert_array_equal(mean, [[0, 0]])
    np.testing.assert_array_equal(root[0], np.eye(2))
    np.testing.assert_array_equal(model.impute(x)[0], model.mean)


def test_tiny_noise_costs_no_digits():
    """The quadratic form as a sum of squares: with σ² = 1e-10 the difference of two large terms would leave none."""
    model = made(1, 4, 2)
    sharp = LinearGaussian(model.loadings, model.mean, torch.full((4,), 1e-10).double())
    z = torch.tensor([[0.3, -1.2]]).double()
    on_the_plane = z @ sharp.loadings.T + sharp.mean
    plain = -0.5 * (4 * np.log(2 * np.pi) + torch.linalg.slogdet(sharp.covariance())[1] + (z**2).sum())
    np.testing.assert_allclose(sharp.log_prob(on_the_plane)[0], plain, atol=1e-6)


def test_without_noise_only_a_square_full_rank_w_has_a_density():
    model = made(2, 3, 3)
    flat = LinearGaussian(model.loadings, model.mean, torch.zeros(3).double())
    x = with_holes(model.sample(20, 0), 1)
    x[:, 2] = 0.1
    for i, row in enumerate(x.numpy()):
        expected = by_inversion(flat, row)
        np.testing.assert_allclose(flat.log_prob(x)[i], expected[0], rtol=1e-8)
        np.testing.assert_allclose(flat.impute(x)[i], expected[3], rtol=1e-6, atol=1e-8)
    thin = LinearGaussian(model.loadings[:, :2], model.mean, torch.zeros(3).double())
    with pytest.raises(DataError, match=r"2 components explain all variance of 3 columns.*take fewer n_components"):
        thin.log_prob(x)


def test_samples_have_the_moments_of_the_model(seed):
    """40,000 rows: nine moments are within 5 of their standard errors, but for 5 of 10⁶ seeds."""
    model = made(3, 3, 2)
    x = model.sample(40_000, seed).numpy()
    covariance = model.covariance().numpy()
    error = np.sqrt((covariance**2 + np.outer(np.diag(covariance), np.diag(covariance))) / len(x))
    assert (np.abs(np.cov(x.T) - covariance) < 5 * error).all()
    assert (np.abs(x.mean(0) - model.mean.numpy()) < 5 * np.sqrt(np.diag(covariance) / len(x))).all()
    np.testing.assert_array_equal(x[:5], model.sample(40_000, seed).numpy()[:5])


def test_turning_the_latent_code_changes_nothing_that_is_seen():
    """z → Qz with QQᵀ = 1: the same density and the same expectations of x, a turned code."""
    model = made(4, 4, 2)
    x = with_holes(model.sample(12, 4), 4)
    turn = torch.linalg.qr(torch.from_numpy(np.random.default_rng(0).normal(size=(2, 2)))).Q
    turned = LinearGaussian(model.loadings @ turn, model.mean, model.noise)
    np.testing.assert_allclose(turned.log_prob(x), model.log_prob(x), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(turned.impute(x), model.impute(x), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(turned.posterior(x)[0], model.posterior(x)[0] @ turn, rtol=1e-9, atol=1e-9)


def test_drawn_values_have_the_conditional_moments(seed):
    """20,000 draws of two missing values of three: six means and variances are within 5 standard errors, but for 4 of
    10⁶ seeds.
    """
    model = made(5, 3, 2)
    row = torch.tensor([0.75, torch.nan, torch.nan]).double()
    filled, code = model.fill(row.expand(20_000, -1), seed=seed)
    assert bool((filled[:, 0] == 0.75).all())
    covariance = model.covariance()
    spread = covariance[1:, 1:] - torch.outer(covariance[1:, 0], covariance[0, 1:]) / covariance[0, 0]
    error = (spread.diagonal() / len(filled)).sqrt()
    assert bool(((filled[:, 1:].mean(0) - model.impute(row[None])[0, 1:]).abs() < 5 * error).all())
    assert bool(((filled[:, 1:].var(0) / spread.diagonal() - 1).abs() < 5 * (2 / len(filled)) ** 0.5).all())
    mean, root = model.posterior(row[None])
    error = (root[0] @ root[0].mT).diagonal().sqrt() / len(code) ** 0.5
    assert bool(((code.mean(0) - mean[0]).abs() < 5 * error).all())
