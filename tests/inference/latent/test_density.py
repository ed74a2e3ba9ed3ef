"""Models with hidden variables are densities: what fits rows fits them, and agrees with EM."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from scipy.special import gammaln, logsumexp

import likely
from likely import PCA, FactorAnalysis, GaussianMixture, HiddenMarkov, KalmanFilter, Mixture, priors
from likely.core.errors import LikelyWarning, SpecError
from likely.inference import EM, HMC, MAP, NUTS, SGLD, Ensemble, Laplace, Variational
from likely.likelihoods import Normal, Poisson
from likely.optim import LBFGS
from likely.sampling.convergence import diagnose

TO_THE_END = MAP(LBFGS(), epochs=40, batch_size=None)
EXACTLY = EM(max_iter=3000, tol=1e-10, starts=3)


def quiet(model, X, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LikelyWarning)
        return model.fit(X, **options)


@pytest.fixture(scope="module")
def counts():
    rng = np.random.default_rng(0)
    return np.concatenate([rng.poisson(2, 60), rng.poisson(12, 40)]).reshape(-1, 1)


@pytest.fixture(scope="module")
def clouds():
    rng = np.random.default_rng(1)
    return np.concatenate([rng.normal(size=(60, 2)), rng.normal(size=(40, 2)) @ [[1, 0.5], [0, 1]] + 4])


@pytest.fixture(scope="module")
def regimes():
    rng = np.random.default_rng(2)
    state = np.repeat([0, 1, 0, 1], 20)
    return rng.normal(np.where(state, 3.0, 0.0), 1.0).reshape(-1, 1)


@pytest.fixture(scope="module")
def factors():
    rng = np.random.default_rng(3)
    return rng.normal(size=(150, 2)) @ rng.normal(size=(2, 5)) + 0.5 * rng.normal(size=(150, 5))


# --- MAP with a flat prior ends where EM ends ----------------------------------------------------------------------
@pytest.mark.parametrize("covariance", ["full", "tied", "diag", "spherical"])
def test_map_reaches_the_optimum_of_em_for_gaussians(covariance, clouds):
    options = {"covariance": covariance, "random_state": 0}
    em = quiet(GaussianMixture(2, inference=EXACTLY, **options), clouds)
    best = quiet(GaussianMixture(2, inference=TO_THE_END, **options), clouds)
    assert abs(best.log_likelihood_ - em.log_likelihood_) < 1e-4 * len(clouds)


def test_map_reaches_the_optimum_of_em_for_counts_and_chains(counts, regimes):
    for model, X in ((Mixture(Poisson(), 2), counts), (HiddenMarkov(Normal(), 2), regimes)):
        em = quiet(model.set_params(inference=EXACTLY, random_state=0), X).log_likelihood_
        best = quiet(model.set_params(inference=TO_THE_END), X).log_likelihood_
        assert abs(best - em) < 1e-4 * len(X)


def test_map_reaches_factors_and_principal_components(factors):
    em = quiet(FactorAnalysis(2, inference=EXACTLY, random_state=0), factors)
    best = quiet(FactorAnalysis(2, inference=TO_THE_END, random_state=0), factors)
    assert abs(best.log_likelihood_ - em.log_likelihood_) < 1e-3 * len(factors)
    closed, climbed = PCA(2).fit(factors), quiet(PCA(2, inference=TO_THE_END, random_state=0), factors)
    np.testing.assert_allclose(climbed.score(factors), closed.score(factors), atol=1e-4)


def test_map_reaches_a_kalman_filters_optimum():
    """Of few steps either variance may be most likely at 0; of 80 there is one optimum, and float32 would miss it."""
    rng = np.random.default_rng(4)
    series = np.cumsum(rng.normal(size=80))[:, None] + rng.normal(size=(80, 1))
    series[[4, 5, 11]] = np.nan
    em = quiet(KalmanFilter.local_level(inference=EM(max_iter=3000, tol=1e-10), random_state=0), series)
    best = quiet(KalmanFilter.local_level(inference=MAP(LBFGS(), epochs=10, batch_size=None), random_state=0), series)
    assert best.log_likelihood_ == pytest.approx(em.log_likelihood_, abs=1e-5)


# --- draws ----------------------------------------------------------------------------------------------------------
def gibbs_poisson(x, draws, scale, seed, middle, unit):
    """z given θ by its probabilities, then θ = (log rates, stick) given z by random-walk steps: (draws, 3)."""
    rng = np.random.default_rng(seed)
    phi = np.array([-1.0, 1.0, 0.0])
    kept = np.empty((draws, 3))

    def parts(phi):
        return middle + unit * phi[:2], 1 / (1 + np.exp(-phi[2]))

    def value(phi, counts, sums):
        eta, share = parts(phi)
        likelihood = (sums * eta - counts * np.exp(eta)).sum() + counts @ np.log([share, 1 - share])
        return likelihood - 0.5 * (phi**2).sum() / scale**2

    for step in range(draws):
        eta, share = parts(phi)
        odds = x[:, None] * eta - np.exp(eta) + np.log([share, 1 - share])
        second = rng.random(len(x)) < 1 / (1 + np.exp(odds[:, 0] - odds[:, 1]))
        counts, sums = np.array([(~second).sum(), second.sum()]), np.array([x[~second].sum(), x[second].sum()])
        for _ in range(4):
            for i in range(3):
                trial = phi.copy()
                trial[i] += 0.35 * rng.normal() * (0.5 if i < 2 else 1.0)
                if np.log(rng.random()) < value(trial, counts, sums) - value(phi, counts, sums):
                    phi = trial
        kept[step] = phi
    return kept


@pytest.fixture(scope="module")
def gibbs_of_counts(counts):
    """What the labels do not touch, by four long chains: {name: (chains, draws)}."""
    x = counts[:, 0].astype(float)
    middle = np.log(x.mean())
    chains = np.stack([gibbs_poisson(x, 1200, 3.0, start, middle, 1.0)[200:] for start in range(4)])
    eta, share = middle + chains[..., :2], 1 / (1 + np.exp(-chains[..., 2]))
    low = eta[..., 0] < eta[..., 1]
    return {"low": eta.min(-1), "high": eta.max(-1), "share": np.where(low, share, 1 - share)}


def test_hmc_on_a_poisson_mixture_agrees_with_gibbs(counts, gibbs_of_counts, seed):
    """Means of what the labels do not touch; each differs by more than 4.5 standard errors in 7 of 10⁶ runs."""
    reference = gibbs_of_counts
    model = quiet(Mixture(Poisson(), 2, inference=HMC(chains=8, draws=150, warmup=200), random_state=seed), counts)
    drawn_eta, drawn_share = model.draws_["eta"][..., 0], model.draws_["weights"][:, 0]
    first = drawn_eta[:, 0] < drawn_eta[:, 1]
    drawn = {
        "low": drawn_eta.min(1),
        "high": drawn_eta.max(1),
        "share": np.where(first, drawn_share, 1 - drawn_share),
    }
    for name, values in drawn.items():
        pairs = [(reference[name], diagnose(reference[name][..., None])[1][0])]
        pairs.append((values, diagnose(values.reshape(8, 150, 1))[1][0]))
        error = np.sqrt(sum(np.var(part) / max(size, 1) for part, size in pairs))
        assert abs(np.mean(values) - np.mean(reference[name])) < 4.5 * error, name


def gibbs_chain(x, draws, scale, seed, middle, unit):
    """States by forward filtering and backward sampling, then φ = (two means, three sticks) by random-walk steps."""
    rng = np.random.default_rng(seed)
    phi, kept = np.array([-0.8, 0.8, 0.0, 1.0, -1.0]), np.empty((draws, 5))

    def parts(phi):
        p = 1 / (1 + np.exp(-phi[2:]))
        return middle + unit * phi[:2], np.array([p[0], 1 - p[0]]), np.array([[p[1], 1 - p[1]], [p[2], 1 - p[2]]])

    def value(phi, z, pairs):
        means, first, moves = parts(phi)
        likelihood = -0.5 * ((x - means[z]) ** 2).sum() + np.log(first[z[0]]) + (pairs * np.log(moves)).sum()
        return likelihood - 0.5 * (phi**2).sum() / scale**2

    for step in range(draws):
        means, first, moves = parts(phi)
        seen = np.exp(-0.5 * (x[:, None] - means) ** 2)
        forward, z = np.empty((len(x), 2)), np.empty(len(x), int)
        for t in range(len(x)):
            forward[t] = seen[t] * (first if t == 0 else forward[t - 1] @ moves)
            forward[t] /= forward[t].sum()
        uniform = rng.random(len(x))
        for t in reversed(range(len(x))):
            weight = forward[t] * (1.0 if t == len(x) - 1 else moves[:, z[t + 1]])
            z[t] = uniform[t] * weight.sum() > weight[0]
        pairs = np.zeros((2, 2))
        np.add.at(pairs, (z[:-1], z[1:]), 1)
        for _ in range(4):
            for i in range(5):
                trial = phi.copy()
                trial[i] += rng.normal() * (0.12 if i < 2 else 1.2)
                if np.log(rng.random()) < value(trial, z, pairs) - value(phi, z, pairs):
                    phi = trial
        kept[step] = phi
    return kept


@pytest.fixture(scope="module")
def gibbs_of_regimes(regimes):
    """What the labels do not touch, by three long chains: {name: (chains, draws)}."""
    x = regimes[:, 0]
    middle, unit = (float(v) for v in Normal(1.0).baseline(torch.from_numpy(x), torch.ones(len(x)).double()))
    sampled = np.stack([gibbs_chain(x, 700, 3.0, start, middle, unit)[100:] for start in range(3)])
    means = middle + unit * sampled[..., :2]
    stay = 1 / (1 + np.exp(-sampled[..., 3])), 1 - 1 / (1 + np.exp(-sampled[..., 4]))
    low = means[..., 0] < means[..., 1]
    return {"low": means.min(-1), "high": means.max(-1), "stay": np.where(low, *stay)}


def test_nuts_on_a_two_state_chain_agrees_with_gibbs(regimes, gibbs_of_regimes, seed):
    """Means that labels do not touch; each differs by more than 4.5 standard errors in 7 of 10⁶ runs."""
    chains, draws, reference = 6, 100, gibbs_of_regimes
    inference = NUTS(chains=chains, draws=draws, warmup=100)
    model = quiet(HiddenMarkov(Normal(1.0), 2, inference=inference, random_state=seed), regimes)
    means, moves = model.draws_["eta"][..., 0], model.draws_["chain.transition"]
    first = means[:, 0] < means[:, 1]
    drawn = {"low": means.min(1), "high": means.max(1), "stay": np.where(first, moves[:, 0, 0], moves[:, 1, 1])}
    for name, values in drawn.items():
        sizes = (diagnose(reference[name][..., None])[1][0], diagnose(values.reshape(chains, draws, 1))[1][0])
        error = np.sqrt(np.var(reference[name]) / sizes[0] + np.var(values) / sizes[1])
        assert abs(np.mean(values) - np.mean(reference[name])) < 4.5 * error, name


def test_log_prob_is_the_average_over_draws(counts, tmp_path):
    model = quiet(Mixture(Poisson(), 2, inference=HMC(chains=2, draws=10, warmup=20), random_state=0), counts)
    eta, weights = model.draws_["eta"][..., 0], model.draws_["weights"]
    x = counts[:, :1].astype(float)
    joint = x[..., None] * eta - np.exp(eta) - gammaln(x[..., None] + 1) + np.log(weights)
    expected = logsumexp(logsumexp(joint, axis=-1), axis=-1) - np.log(len(eta))
    np.testing.assert_allclose(model.log_prob(counts), expected, rtol=1e-10)
    model.save(tmp_path / "draws.likely")
    loaded = likely.load(tmp_path / "draws.likely")
    np.testing.assert_array_equal(loaded.log_prob(counts), model.log_prob(counts))
    assert loaded.info_ == model.info_


@pytest.mark.parametrize(
    "inference",
    [
        *(Ensemble(2, by=MAP(epochs=2)), Ensemble(2, by=EM(max_iter=3, tol=0.0))),
        *(Variational(steps=10), SGLD(draws=10), Laplace(draws=10)),
    ],
    ids=lambda inference: type(inference).__name__,
)
def test_other_inferences_average_too(inference, clouds):
    model = quiet(GaussianMixture(2, inference=inference, random_state=0), clouds)
    assert model.draws_ is not None
    assert np.isfinite(model.log_prob(clouds)).all()


def test_a_prior_has_no_say_in_em(counts):
    with pytest.raises(SpecError, match=r"EM maximises the likelihood, so prior=Normal\(\) has no effect; use MAP"):
        Mixture(Poisson(), 2, prior=priors.Normal()).fit(counts)


def test_a_narrow_prior_draws_components_to_the_whole(counts):
    free, held = (
        quiet(Mixture(Poisson(), 2, inference=TO_THE_END, prior=prior, random_state=0), counts).eta_
        for prior in (priors.Flat(), priors.Normal(0.01))
    )
    assert np.ptp(held) < 0.2 * np.ptp(free)
    assert torch.as_tensor(held).isfinite().all()


def test_laplace_has_the_curvature_of_counts(counts, seed):
    """One Poisson: log λ has precision Σx + 1/9 at the mode, and draws have that spread (χ² at 5σ of 4,000 draws)."""
    model = quiet(Mixture(Poisson(), 1, inference=Laplace(draws=4000), random_state=seed), counts)
    spread = model.draws_["eta"][:, 0, 0].std()
    precision = model.weights_[0] * len(counts) * np.exp(model.eta_[0, 0]) + 1 / 9
    np.testing.assert_allclose(spread, precision**-0.5, rtol=0.06)
