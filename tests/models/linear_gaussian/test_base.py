"""EM for the linear-Gaussian model: its steps against plain sums over rows, its starts, what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.models.linear_gaussian.test_density import by_inversion, made, with_holes

from likely.core.errors import ConvergenceWarning, DataError
from likely.inference import EM
from likely.inference.latent.density import fit_latent
from likely.models.linear_gaussian.em import LinearGaussianEM


def fitted(x, weight=None, *, factors=2, isotropic=False, steps=15, starts=1):
    latent = LinearGaussianEM(x, weight, factors, isotropic=isotropic, floor=1e-6)
    fit = fit_latent(EM(max_iter=steps, tol=0.0, starts=starts), latent, "auto", name="EM", random_state=0)
    return latent.restored(fit.params), fit


@given(st.integers(0, 2**31), st.integers(1, 3), st.booleans(), st.booleans())
def test_no_step_lowers_the_likelihood_which_ends_at_the_densitys(seed, factors, isotropic, holes):
    x = made(seed, 5, 2, isotropic=isotropic).sample(60, seed)
    x = with_holes(x, seed, 0.2) if holes else x
    model, fit = fitted(x, factors=factors, isotropic=isotropic, steps=12)
    assert (fit.trace.diff() > -1e-9 * fit.trace.abs().max()).all()
    np.testing.assert_allclose(fit.trace[-1], model.log_prob(x).sum(), rtol=1e-9)


@pytest.mark.parametrize("isotropic", [False, True])
def test_one_step_is_that_of_plain_sums_over_rows(isotropic):
    """The M-step written out: z of each row by inversion, one regression a column, then the spread of z absorbed."""
    x = with_holes(made(4, 4, 2).sample(50, 4), 4, 0.25)
    weight = torch.from_numpy(np.random.default_rng(0).uniform(0.1, 2, 50))
    latent = LinearGaussianEM(x, weight, 2, isotropic=isotropic, floor=1e-9)
    params = latent.start([0])
    after = latent.maximise(params, latent.expect(params)[0])
    model = latent.restored({name: value[0] for name, value in params.items()})
    improved = latent.restored({name: value[0] for name, value in after.items()})

    rows, w = x.numpy(), weight.numpy()
    codes = [by_inversion(model, row)[1:3] if not np.isnan(row).all() else (np.zeros(2), np.eye(2)) for row in rows]
    hidden = np.array([[*mean, 1.0] for mean, _ in codes])
    second = np.einsum("ni,nj->nij", hidden, hidden)
    second[:, :2, :2] += np.array([covariance for _, covariance in codes])
    solved, rest, counts = [], [], []
    for column in rows.T:
        known = ~np.isnan(column)
        gram = (w[known, None, None] * second[known]).sum(0)
        cross = (w[known, None] * column[known, None] * hidden[known]).sum(0)
        solved.append(np.linalg.solve(gram, cross))
        rest.append((w[known] * column[known] ** 2).sum() - cross @ solved[-1])
        counts.append(w[known].sum())
    solved, rest, counts = np.array(solved), np.array(rest), np.array(counts)
    moments = (w[:, None, None] * second).sum(0) / w.sum()
    centre = moments[:2, 2]
    spread = moments[:2, :2] - np.outer(centre, centre)
    noise = np.full(4, rest.sum() / counts.sum()) if isotropic else rest / counts
    np.testing.assert_allclose(improved.noise, noise, rtol=1e-8)
    np.testing.assert_allclose(improved.mean, solved[:, 2] + solved[:, :2] @ centre, rtol=1e-8, atol=1e-10)
    plane = solved[:, :2] @ spread @ solved[:, :2].T
    np.testing.assert_allclose(improved.loadings @ improved.loadings.T, plane, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("holes", [False, True])
def test_many_rows_of_a_pattern_are_the_rows_themselves(holes, monkeypatch):
    """Replaced by d + 1 rows with the same Σ x̃x̃ᵀ, or taken one by one: the same fit."""
    x = made(5, 3, 1).sample(200, 5)
    if holes:
        x[:90, 0], x[150:, 2] = torch.nan, torch.nan
        x[7, 1] = torch.nan
    weight = torch.from_numpy(np.random.default_rng(1).uniform(0, 2, 200))
    compressed = LinearGaussianEM(x, weight, 1, isotropic=False, floor=1e-6)
    assert sum(len(block.values) for block, _ in compressed._blocks()) < 30
    short, _ = fitted(x, weight, factors=1)
    monkeypatch.setattr("likely.models.linear_gaussian.em.MANY", 10**9)
    one_by_one = LinearGaussianEM(x, weight, 1, isotropic=False, floor=1e-6)
    assert sum(len(block.values) for block, _ in one_by_one._blocks()) == 200
    plain, _ = fitted(x, weight, factors=1)
    for name in ("mean", "noise"):
        np.testing.assert_allclose(getattr(short, name), getattr(plain, name), rtol=1e-7)
    np.testing.assert_allclose(short.covariance(), plain.covariance(), rtol=1e-7)


def test_several_starts_run_side_by_side_and_the_best_is_kept():
    x = with_holes(made(6, 5, 2).sample(80, 6), 6, 0.1)
    _, best = fitted(x, steps=4, starts=4)
    assert best.finals.shape == (4,)
    assert best.trace[-1] == best.finals.max()
    _, alone = fitted(x, steps=4)
    np.testing.assert_allclose(alone.trace[-1], best.finals[0], rtol=1e-12)


def test_units_of_the_columns_do_not_matter():
    """Factor analysis is equivariant: from metres to kilometres, W and Ψ follow, and log p by the Jacobian."""
    x = with_holes(made(7, 4, 1).sample(100, 7), 7, 0.1)
    unit = torch.tensor([1.0, 1e-6, 1e6, 3.0]).double()
    (plain, one), (scaled, other) = fitted(x, factors=1), fitted(x * unit + 5, factors=1)
    np.testing.assert_allclose(
        scaled.loadings @ scaled.loadings.T / torch.outer(unit, unit), plain.loadings @ plain.loadings.T, rtol=1e-6
    )
    np.testing.assert_allclose(scaled.noise / unit**2, plain.noise, rtol=1e-6)
    jacobian = ((~x.isnan()).sum(0) * unit.log()).sum()
    np.testing.assert_allclose(other.trace[-1] + jacobian, one.trace[-1], rtol=1e-8)


def test_what_cannot_be_fitted_is_refused():
    x = torch.ones(5, 2).double()
    with pytest.raises(DataError, match="X has no variance: every row is the same"):
        LinearGaussianEM(x, None, 1, isotropic=False, floor=1e-3)
    x[:, 1] = torch.nan
    with pytest.raises(DataError, match="X has no value in column 1"):
        LinearGaussianEM(x, None, 1, isotropic=False, floor=1e-3)


def test_steps_that_do_not_suffice_are_reported():
    latent = LinearGaussianEM(made(8, 4, 1).sample(50, 8), None, 1, isotropic=False, floor=1e-3)
    with pytest.warns(ConvergenceWarning, match=r"FactorAnalysis was still rising after max_iter=2 steps of EM"):
        fit_latent(EM(max_iter=2, tol=1e-12), latent, "auto", name="FactorAnalysis", random_state=0)
