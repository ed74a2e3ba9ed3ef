from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal

from likely.core.errors import DataError
from likely.models.emissions import GaussianEmission
from likely.models.emissions.gaussian_floor import at_least
from likely.models.emissions.gaussian_missing import patterns

KINDS = ("full", "tied", "diag", "spherical")
STARTS, COMPONENTS, COLUMNS = 2, 3, 4


def made(kind, seed=0):
    """An emission and parameters of two starts and three components, with their covariances as matrices."""
    random = np.random.default_rng(seed)
    mean = random.normal(size=(STARTS, COMPONENTS, COLUMNS))
    if kind in ("full", "tied"):
        shape = random.normal(size=(STARTS, COMPONENTS if kind == "full" else 1, COLUMNS, COLUMNS))
        covariance = shape @ shape.swapaxes(-1, -2) + 0.3 * np.eye(COLUMNS)
        matrices = np.broadcast_to(covariance, (STARTS, COMPONENTS, COLUMNS, COLUMNS))
    else:
        covariance = random.uniform(0.5, 2, size=(STARTS, COMPONENTS, COLUMNS if kind == "diag" else 1))
        matrices = np.einsum("skd,de->skde", np.broadcast_to(covariance, mean.shape), np.eye(COLUMNS))
    emission = GaussianEmission(COLUMNS, kind, 0.0)
    params = emission.complete({"mean": torch.from_numpy(mean), "covariance": torch.from_numpy(covariance)})
    return emission, params, matrices


def rows_of(missing, rows=50):
    x = np.random.default_rng(5).normal(size=(rows, COLUMNS))
    if missing:
        x[np.random.default_rng(6).random(x.shape) < 0.3] = np.nan
        x[0] = np.nan
    return x


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
def test_log_prob_is_the_density_of_what_is_seen(kind, missing):
    emission, params, matrices = made(kind)
    x = rows_of(missing)
    log_prob = emission.log_prob(params, torch.from_numpy(x))
    assert log_prob.shape == (50, STARTS, COMPONENTS)
    for s, k in np.ndindex(STARTS, COMPONENTS):
        mean, covariance = params["mean"][s, k].numpy(), matrices[s, k]
        for row, value in zip(x, log_prob[:, s, k], strict=True):
            seen = np.flatnonzero(~np.isnan(row))
            part = covariance[np.ix_(seen, seen)]
            expected = multivariate_normal(mean[seen], part).logpdf(row[seen]) if len(seen) else 0.0
            np.testing.assert_allclose(float(value), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
def test_the_m_step_maximises_the_expected_log_density(kind, missing):
    """No small move of the estimates raises Σ w E[log p(x | θ)], with missing values filled in by expectation."""
    emission, params, matrices = made(kind)
    x = rows_of(missing)
    weight = torch.from_numpy(np.random.default_rng(7).uniform(size=(50, STARTS, COMPONENTS)))
    emission.bind(torch.from_numpy(x), None)
    totals = emission.zeros(STARTS, COMPONENTS)
    for rows in (slice(0, 20), slice(20, 50)):
        emission.accumulate(totals, params, torch.from_numpy(x[rows]), weight[rows], rows)
    best = emission.maximise(params, totals)
    independent = kind in ("diag", "spherical")

    def objective(candidate):
        whole = np.zeros(STARTS)
        for s, k in np.ndindex(STARTS, COMPONENTS):
            own = candidate["covariance"][s, min(k, candidate["covariance"].shape[1] - 1)].numpy()
            own = np.diag(np.broadcast_to(own, COLUMNS)) if own.ndim == 1 else own
            mean, old, before = candidate["mean"][s, k].numpy(), params["mean"][s, k].numpy(), matrices[s, k]
            for row, w in zip(x, weight[:, s, k].numpy(), strict=True):
                seen, gone = np.flatnonzero(~np.isnan(row)), np.flatnonzero(np.isnan(row))
                if independent:  # what is missing does not count
                    gap, part = row[seen] - mean[seen], own[np.ix_(seen, seen)]
                    second = np.outer(gap, gap)
                else:
                    across = before[np.ix_(gone, seen)] @ np.linalg.inv(before[np.ix_(seen, seen)])
                    full = row.copy()
                    full[gone] = old[gone] + across @ (row[seen] - old[seen])
                    part, second = own, np.outer(full - mean, full - mean)
                    second[np.ix_(gone, gone)] += before[np.ix_(gone, gone)] - across @ before[np.ix_(seen, gone)]
                if len(part):
                    whole[s] -= 0.5 * w * (np.linalg.slogdet(part)[1] + np.trace(np.linalg.solve(part, second)))
        return whole

    top = objective(best)
    random = np.random.default_rng(8)
    for _ in range(3):
        near = {name: best[name].clone() for name in ("mean", "covariance")}
        near["mean"] += 1e-3 * torch.from_numpy(random.normal(size=near["mean"].shape))
        assert (objective(near) < top).all()
        near = {name: best[name].clone() for name in ("mean", "covariance")}
        move = 1e-3 * torch.from_numpy(random.normal(size=near["covariance"].shape))
        near["covariance"] += move if independent else move + move.mT
        assert (objective(near) < top).all()


@pytest.mark.parametrize("kind", KINDS)
def test_sums_do_not_depend_on_where_they_are_taken_from(kind):
    """The same weights give the same estimates, whatever parameters the E-step had."""
    emission, params, _ = made(kind)
    _, others, _ = made(kind, seed=9)
    x = torch.from_numpy(rows_of(False))
    weight = torch.from_numpy(np.random.default_rng(7).uniform(size=(50, STARTS, COMPONENTS)))
    emission.bind(x, None)
    estimates = []
    for origin in (params, others, None):
        totals = emission.zeros(STARTS, COMPONENTS)
        emission.accumulate(totals, origin, x, weight, slice(0, 50))
        estimates.append(emission.maximise(origin, totals))
    for other in estimates[1:]:
        torch.testing.assert_close(other["mean"], estimates[0]["mean"], rtol=1e-10, atol=1e-10)
        torch.testing.assert_close(other["covariance"], estimates[0]["covariance"], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_a_component_without_rows_has_the_background(kind):
    emission, params, _ = made(kind)
    x = torch.from_numpy(rows_of(False))
    emission.bind(x, None)
    totals = emission.zeros(STARTS, COMPONENTS)
    weight = torch.ones(50, STARTS, COMPONENTS, dtype=torch.float64)
    weight[:, 0, 1] = 0
    emission.accumulate(totals, params, x, weight, slice(0, 50))
    estimate = emission.maximise(params, totals)
    np.testing.assert_allclose(estimate["mean"][0, 1], x.mean(0), rtol=1e-12)
    if kind != "tied":
        own = estimate["covariance"][0, 1]
        variance = x.var(0, correction=0)
        expected = {"full": torch.diag(variance), "diag": variance, "spherical": variance.mean().reshape(1)}
        torch.testing.assert_close(own, expected[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_draws_have_the_moments(kind, seed):
    """Of 40,000 draws the moments are within 6 of their standard errors or more: a false alarm in 5 of 10⁸ seeds."""
    emission, params, matrices = made(kind)
    torch.manual_seed(seed)
    one = {name: value[0] for name, value in params.items()}
    component = torch.arange(COMPONENTS).repeat(40_000)
    drawn = emission.sample(one, component).numpy()
    for k in range(COMPONENTS):
        own = drawn[component.numpy() == k]
        covariance = matrices[0, k]
        scale = np.sqrt(np.diag(covariance))
        np.testing.assert_array_less(np.abs(own.mean(0) - one["mean"][k].numpy()), 6 * scale / 200)
        np.testing.assert_array_less(np.abs(np.cov(own.T) - covariance), 6 * np.sqrt(2) * np.outer(scale, scale) / 200)


def test_blocks_and_copies_have_memory_of_their_own():
    emission, params, _ = made("full")
    x = torch.from_numpy(rows_of(False))
    first = emission.log_prob(params, x).clone()
    other = copy.copy(emission)
    other.log_prob(params, x + 1)
    weight = torch.ones(50, STARTS, COMPONENTS, dtype=torch.float64)
    totals, fresh = emission.zeros(STARTS, COMPONENTS), emission.zeros(STARTS, COMPONENTS)
    emission.accumulate(totals, params, x, weight, slice(0, 50))  # uses what log_prob left
    copy.copy(emission).accumulate(fresh, params, x, weight, slice(0, 50))
    for name in totals:
        torch.testing.assert_close(totals[name], fresh[name], rtol=0, atol=0)
    torch.testing.assert_close(emission.log_prob(params, x), first, rtol=0, atol=0)


def test_many_rows_are_the_same_as_a_few():
    emission, params, _ = made("full")
    x = torch.randn(60_000, COLUMNS, dtype=torch.float64)
    whole = emission.log_prob(params, x)
    torch.testing.assert_close(
        whole[50_000:50_010], emission.log_prob(params, x[50_000:50_010]), rtol=1e-12, atol=1e-12
    )


def test_clamped_eigenvalues_are_the_best_allowed():
    """Of all Σ with eigenvalues ≥ f, none has a higher −log|Σ| − tr(Σ⁻¹S) than S with its eigenvalues clamped."""
    random = np.random.default_rng(0)
    shape = random.normal(size=(5, 5))
    sample = torch.from_numpy(shape @ np.diag([1e-9, 1e-3, 0.2, 1.0, 3.0]) @ shape.T)
    held, changed = at_least(sample, 0.1)
    assert bool(changed)
    np.testing.assert_allclose(np.linalg.eigvalsh(held).min(), 0.1, rtol=1e-9)

    def value(matrix):
        return float(-torch.logdet(matrix) - torch.linalg.solve(matrix, sample).trace())

    for _ in range(200):
        move = torch.from_numpy(random.normal(size=(5, 5)))
        near, _ = at_least(held + 0.02 * (move + move.T), 0.1)
        assert value(near) <= value(held) + 1e-9
    same, changed = at_least(torch.eye(2, dtype=torch.float64).expand(3, 2, 2), 0.5)
    assert not bool(changed.any())
    assert torch.equal(same, torch.eye(2, dtype=torch.float64).expand(3, 2, 2))


def test_patterns_cover_each_row_once():
    x = torch.from_numpy(rows_of(True))
    seen = torch.cat([rows for rows, _, _ in patterns(x)])
    assert sorted(seen.tolist()) == list(range(50))
    for rows, known, gone in patterns(x):
        assert bool(x[rows][:, gone].isnan().all())
        assert not bool(x[rows][:, known].isnan().any())


def test_other_widths_are_refused():
    with pytest.raises(DataError, match="X has 2 columns; these Gaussians have 4"):
        GaussianEmission(4).check(torch.zeros(3, 2))
