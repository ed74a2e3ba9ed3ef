"""EM for x = Wz + μ + ε: its statistics, its steps and its density, against dense Gaussians."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal

from likely.core.errors import DataError
from likely.models.linear_gaussian.em import LinearGaussianEM

ROWS, D, K = 40, 4, 2


def bound(*, isotropic=False, missing=False, weighted=False, rows=ROWS):
    x = torch.randn(rows, K, dtype=torch.float64) @ torch.randn(K, D, dtype=torch.float64)
    x = 3 + 10 * (x + 0.5 * torch.randn(rows, D, dtype=torch.float64))
    if missing:
        x[::3, 0], x[1::4, 2:] = torch.nan, torch.nan
    weight = torch.rand(rows, dtype=torch.float64) + 0.5 if weighted else None
    return LinearGaussianEM(x, weight, K, isotropic=isotropic, floor=1e-6), x, weight


def dense_log_prob(model, params, x):
    """log p of the known values of each row, by scipy."""
    own = model.restored({name: value[0] for name, value in params.items()})
    mean, covariance = own.mean.numpy(), own.covariance().numpy()
    values = []
    for row in x.numpy():
        seen = ~np.isnan(row)
        values.append(multivariate_normal(mean[seen], covariance[np.ix_(seen, seen)]).logpdf(row[seen]))
    return torch.tensor(values, dtype=torch.float64)


CASES = pytest.mark.parametrize(
    ("isotropic", "missing", "weighted"),
    [(False, False, False), (True, False, True), (False, True, False), (True, True, True)],
    ids=["plain", "isotropic-weighted", "missing", "all"],
)


@CASES
def test_values_are_those_of_dense_gaussians(isotropic, missing, weighted):
    model, x, weight = bound(isotropic=isotropic, missing=missing, weighted=weighted)
    params = model.start([0, 1])
    rows = dense_log_prob(model, params, x)
    torch.testing.assert_close(model.row_log_prob(params, x)[:, 0], rows, rtol=1e-9, atol=1e-9)
    total = rows.sum() if weight is None else weight @ rows
    torch.testing.assert_close(model.expect(params)[1][0], total, rtol=1e-9, atol=1e-9)
    for name, value in model.from_free(model.to_free(params)).items():
        torch.testing.assert_close(value, params[name], rtol=1e-6, atol=1e-8)


@CASES
def test_no_step_lowers_the_likelihood(isotropic, missing, weighted):
    model, _, _ = bound(isotropic=isotropic, missing=missing, weighted=weighted)
    params, values = model.start([0, 1]), []
    for _ in range(10):
        statistics, value = model.expect(params)
        values.append(value)
        params = model.maximise(params, statistics)
    rises = torch.stack(values).diff(dim=0)
    assert bool((rises > -1e-8).all())
    assert bool((rises[:, 1] > 0).any())


def test_isotropic_noise_ends_at_the_eigenvalues_of_the_covariance():
    """Tipping and Bishop: WWᵀ + σ²I keeps the K largest, and σ² is the mean of the others."""
    model, x, _ = bound(isotropic=True)
    params = model.start([0])
    for _ in range(100):
        params = model.maximise(params, model.expect(params)[0])
    values = np.linalg.eigvalsh(np.cov(x.numpy().T, bias=True))
    expected = np.concatenate([np.full(D - K, values[: D - K].mean()), values[D - K :]])
    own = model.restored({name: value[0] for name, value in params.items()})
    np.testing.assert_allclose(np.linalg.eigvalsh(own.covariance().numpy()), expected, rtol=1e-6)
    np.testing.assert_allclose(own.mean, x.mean(0), rtol=1e-8)


@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
def test_the_rows_that_stand_for_many_have_their_statistics(missing, monkeypatch):
    model, x, _ = bound(missing=missing, rows=200)
    monkeypatch.setattr("likely.models.linear_gaussian.em.MANY", 1e9)
    plain = LinearGaussianEM(x, None, K, isotropic=False, floor=1e-6)
    assert model.held
    assert not plain.held
    params = plain.start([0, 1])
    statistics, value = plain.expect(params)
    fewer, same = model.expect(params)
    torch.testing.assert_close(same, value, rtol=1e-9, atol=1e-9)
    for name, total in statistics.items():
        torch.testing.assert_close(fewer[name], total, rtol=1e-8, atol=1e-8)
    torch.testing.assert_close(model.correlation(), plain.correlation(), rtol=1e-9, atol=1e-9)


def test_data_that_say_nothing_are_refused():
    same = torch.ones(5, 2, dtype=torch.float64)
    with pytest.raises(DataError, match="X has no variance: every row is the same"):
        LinearGaussianEM(same, None, 1, isotropic=False, floor=1e-6)
    same[:, 1] = torch.nan
    with pytest.raises(DataError, match=r"X has no value in column 1 \(in rows with weight\); drop the column"):
        LinearGaussianEM(same, None, 1, isotropic=False, floor=1e-6)
