"""Markov chains over the parameters of a model: closed forms, agreement, resuming, and posteriors that do not exist."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from scipy.stats import ttest_ind
from torch import nn

from likely import Classifier, Regressor, priors
from likely.core.errors import (
    ApproximationWarning,
    ConvergenceWarning,
    SpecError,
    TrainingError,
)
from likely.inference import HMC, NUTS, Ensemble, Exact, Langevin, MetropolisHastings
from likely.inference.log_posterior import LogPosterior
from likely.likelihoods import Normal
from likely.networks import MLP
from likely.sampling.convergence import diagnose

PROPER = priors.Normal(1.0, biases=priors.Normal(1.0))
LONG = {
    "HMC": HMC(chains=32, draws=100, warmup=100),
    "NUTS": NUTS(chains=32, draws=50, warmup=100),
    "Langevin": Langevin(chains=32, draws=100, warmup=200, thin=8),
    "MetropolisHastings": MetropolisHastings(chains=64, draws=100, warmup=500, thin=20),
}
SHORT = {
    "HMC": HMC(chains=3, draws=8, warmup=30, max_steps=8),
    "NUTS": NUTS(chains=3, draws=8, warmup=30, max_depth=3),
    "Langevin": Langevin(chains=3, draws=8, warmup=30, thin=2),
    "MetropolisHastings": MetropolisHastings(chains=3, draws=8, warmup=30, thin=2),
}


@pytest.fixture
def labelled(rng):
    x = rng.normal(size=(30, 1))
    return x, (rng.random(30) < 1 / (1 + np.exp(-2 * x[:, 0] - 0.5))).astype(int)


def flat(model):
    """All draws, (chains, draws, d)."""
    posterior = model.posterior_
    parts = [posterior.parameters[name].flatten(1) for name in posterior.drawn]
    return torch.cat(parts, 1).unflatten(0, tuple(posterior.log_prob.shape)).numpy()


# --- closed forms ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", LONG)
def test_the_linear_gaussian_posterior_is_met(name, data, seed, chances):
    """In white coordinates 4 means are 0 and 10 products those of the identity: a false alarm in 70,000 runs."""
    X, y = data
    model = Regressor(Normal(0.5), prior=PROPER, inference=LONG[name], random_state=seed).fit(X, y)
    design = np.column_stack([X, np.ones(len(X))])
    covariance = np.linalg.inv(design.T @ design / 0.25 + np.eye(4))
    mean = covariance @ design.T @ y / 0.25
    draws = flat(model)
    rhat, ess = diagnose(draws)
    assert rhat.max() < 1.05
    assert ess.min() > 500
    white = (draws - mean) @ np.linalg.inv(np.linalg.cholesky(covariance)).T
    first, second = np.triu_indices(4)
    assert chances(white, 0.0).min() > 1e-6
    assert chances(white[..., first] * white[..., second], first == second).min() > 1e-6


def test_predictive_intervals_are_those_of_the_exact_posterior(data, seed):
    """6,400 draws: means ± 0.003, deviations ± 0.2 %, levels ± 0.001 (standard errors); more than five are allowed."""
    X, y = data
    arguments = {"likelihood": Normal(0.5), "prior": PROPER}
    exact = Regressor(inference=Exact("full"), **arguments).fit(X, y).predict_dist(X)
    drawn = Regressor(inference=HMC(64, 100, 100), random_state=seed, **arguments).fit(X, y).predict_dist(X)
    np.testing.assert_allclose(drawn.mean, exact.mean, atol=0.02)
    np.testing.assert_allclose(drawn.stddev, exact.stddev, rtol=0.02)
    for level in (0.05, 0.95):  # the quantile of one is that of the other
        quantile = exact.icdf(torch.full((len(X),), level, dtype=torch.float64))
        np.testing.assert_allclose(drawn.cdf(quantile), level, atol=0.01)


@pytest.mark.parametrize("name", ["HMC", "NUTS"])
def test_the_logistic_posterior_is_that_of_a_grid(name, labelled, seed, chances):
    """Two parameters: their posterior by quadrature on a grid, which is exact to many digits.

    Two means and two variances, each with a p-value above 1e-6.
    """
    x, y = labelled
    prior = priors.Normal(2.0, biases=priors.Normal(2.0))
    model = Classifier(prior=prior, inference=LONG[name], random_state=seed).fit(x, y)
    w, b = np.meshgrid(np.linspace(-4, 10, 400), np.linspace(-6, 6, 400), indexing="ij")
    eta = w[..., None] * x[:, 0] + b[..., None]
    log_p = (y * eta - np.logaddexp(0, eta)).sum(-1) - (w**2 + b**2) / 8
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    draws = flat(model)
    mean = np.array([(p * grid).sum() for grid in (w, b)])
    variance = np.array([(p * (grid - own) ** 2).sum() for grid, own in zip((w, b), mean, strict=True)])
    assert chances(draws, mean).min() > 1e-6
    assert chances((draws - mean) ** 2, variance).min() > 1e-6


@pytest.mark.filterwarnings("ignore:The chains do not agree")  # the runs do, in what they predict
def test_two_runs_of_a_network_agree(seed):
    """Two independent runs agree on the moments of η, though its weights have many modes.

    Welch's t of 24 independent chains each, for 20 moments: a false alarm in 1 of 10⁵ seeds. Chains of a run that all
    hung on the same random numbers would disagree with those of another.
    """
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(10, 1))
    y = np.sin(2 * x[:, 0]) + 0.5 * rng.normal(size=10)
    arguments = {"likelihood": Normal(0.5), "network": MLP((2,), "tanh"), "prior": PROPER}
    by = HMC(24, 40, 60, max_steps=16)
    runs = []
    for random_state in (2 * seed, 2 * seed + 1):
        posterior = Regressor(inference=by, random_state=random_state, **arguments).fit(x, y).posterior_
        eta = posterior.eta(torch.from_numpy(x))[..., 0].unflatten(0, (24, 40))
        runs.append(torch.cat([eta, eta.square()], -1).mean(1).numpy())
    assert ttest_ind(*runs, equal_var=False).pvalue.min() > 5e-7


# --- chains ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", SHORT)
def test_the_same_seed_gives_the_same_bits(name, data):
    state = torch.get_rng_state()
    first, again, other = (
        Regressor(prior=PROPER, inference=SHORT[name], random_state=seed).fit(*data) for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(flat(first), flat(again))
    assert not np.array_equal(flat(first), flat(other))
    assert torch.equal(torch.get_rng_state(), state)


def test_chains_are_one_program(data, monkeypatch):
    """However many chains there are, log p is asked for as often."""
    counts = []
    plain = LogPosterior.value_and_grad

    def counted(self, theta):
        counts[-1] += 1
        return plain(self, theta)

    monkeypatch.setattr(LogPosterior, "value_and_grad", counted)
    for chains in (2, 400):
        counts.append(0)
        by = HMC(chains, draws=10, warmup=0, step_size=0.5, trajectory=2.0)
        Regressor(Normal(0.5), prior=PROPER, inference=by, random_state=0).fit(*data)
    assert counts[0] == counts[1]


def test_thinned_draws_are_every_nth(data):
    every, third = (
        Regressor(Normal(0.5), prior=PROPER, inference=HMC(2, draws, 20, thin), random_state=0).fit(*data)
        for draws, thin in ((12, 1), (4, 3))
    )
    np.testing.assert_array_equal(flat(every)[:, 2::3], flat(third))


def test_weights_gaps_and_positions(rng, seed):
    """A weight of 2 is the row twice; a missing target is no target; positions have posteriors of their own.

    3,200 draws of means whose posterior deviation is at most 0.5: ± 0.009, and 5 of those are allowed.
    """
    X, y = rng.normal(size=(20, 2)), rng.normal(size=(20, 2))
    y[:, 1] += 5
    y[3:6, 0] = np.nan
    by = HMC(32, 100, 100)
    weighted = Regressor(Normal(0.5), prior=PROPER, inference=by, random_state=seed)
    weighted.fit(X, y, sample_weight=np.where(np.arange(20) < 5, 2.0, 1.0))
    expected = Regressor(Normal(0.5), prior=PROPER, inference=Exact("full"))
    expected.fit(np.vstack([X, X[:5]]), np.vstack([y, y[:5]]))
    drawn, exact = weighted.predict_dist(X), expected.predict_dist(X)
    np.testing.assert_allclose(drawn.mean, exact.mean, atol=0.05)
    np.testing.assert_allclose(drawn.stddev, exact.stddev, rtol=0.05)


def test_what_nothing_speaks_of_is_left_alone(rng, seed):
    """A constant added to all logits changes nothing, and flat biases do not forbid it: no chain moves that way.

    Of independent draws R-hat would be 1 ± 0.003.
    """
    X = rng.normal(size=(60, 2))
    y = rng.integers(3, size=60)
    model = Classifier(prior=priors.Normal(1.0), inference=HMC(16, 100, 100), random_state=seed).fit(X, y)
    apart = model.posterior_.parameters["network.bias"] - model.posterior_.parameters["network.bias"].mean(0)
    sizes = torch.linalg.svdvals(apart)
    assert sizes[1] > 1
    assert sizes[2] < 1e-9
    assert model.posterior_.info["rhat"] < 1.05


def test_large_and_small_columns_need_no_care(rng, seed):
    """The chains run in coordinates of their own: what X is measured in does not matter.

    Each coefficient is a mean of 1,600 draws with deviation 0.07: ± 0.0025 between two runs, and 0.05 is allowed.
    """
    X = rng.normal(size=(50, 2))
    y = X.sum(1) + 0.5 * rng.normal(size=50)
    by = HMC(16, 100, 60)
    plain = Regressor(Normal(0.5), inference=by, random_state=seed).fit(X, y)
    scaled = Regressor(Normal(0.5), inference=by, random_state=seed).fit(X * [1e6, 1e-6], y)
    assert scaled.posterior_.info["rhat"] < 1.05
    np.testing.assert_allclose(scaled.coef_ * [1e6, 1e-6], plain.coef_, atol=0.05)


def test_a_network_that_cannot_be_vectorised(data):
    class Stubborn(nn.Module):
        def __init__(self, d, out):
            super().__init__()
            self.linear = nn.Linear(d, out)

        def forward(self, x):
            return self.linear(x) * (1.0 if self.linear.bias.sum().item() < 1e9 else 2.0)

    def network(in_shape, out_features):
        return Stubborn(in_shape[-1], out_features)

    model = Regressor(Normal(0.5), network, PROPER, HMC.example(), random_state=0).fit(*data)
    assert np.isfinite(model.predict(data[0])).all()


def test_an_ensemble_of_chains(data):
    model = Regressor(Normal(0.5), prior=PROPER, inference=Ensemble(2, SHORT["HMC"]), random_state=0).fit(*data)
    assert len(model.posterior_) == 2 * 24


def test_info_tells_how_it_went(data, seed):
    """Bounds far from what chains do that mix: R-hat of 1,600 independent draws is 1 ± 0.003."""
    info = (
        Regressor(Normal(0.5), prior=PROPER, inference=HMC(16, 100, 60), random_state=seed).fit(*data).posterior_.info
    )
    assert 0.5 < info["acceptance"] <= 1
    assert info["divergences"] == 0
    assert info["step_size"] > 0
    assert 0.99 < info["rhat"] < 1.05
    assert info["ess"] > 100
    assert info["seconds"] > 0


# --- when something is wrong ----------------------------------------------------------------------------------------
def test_chains_that_disagree_are_said(data):
    by = HMC(chains=4, draws=100, warmup=0, step_size=1e-3, trajectory=2e-3)
    with pytest.warns(ConvergenceWarning, match=r"R-hat of .* is .*, above 1.05. Try a longer warmup \(now 0\)"):
        Regressor(Normal(0.5), prior=PROPER, inference=by, random_state=0).fit(*data)


def test_chains_that_stand_still_are_said(data):
    by = MetropolisHastings(chains=4, draws=100, warmup=0, thin=1, step_size=1e4)
    with pytest.warns(ConvergenceWarning, match="were accepted: the chains stand still"):
        Regressor(Normal(0.5), prior=PROPER, inference=by, random_state=0).fit(*data)


def test_moves_that_diverge_are_said(data):
    by = HMC(chains=4, draws=100, warmup=0, step_size=50.0, trajectory=500.0)
    with pytest.warns(ConvergenceWarning):
        model = Regressor(Normal(0.5), prior=PROPER, inference=by, random_state=0).fit(*data)
    assert model.posterior_.info["divergences"] == 400


@pytest.mark.parametrize("inference", [HMC(4, 10, 20), MetropolisHastings(4, 10, 20, 1)], ids=repr)
def test_separable_data_under_a_flat_prior_have_no_posterior(inference):
    x = np.array([[-2.0], [-1.0], [-0.5], [0.5], [1.0], [2.0]])
    y = [0, 0, 0, 1, 1, 1]
    with pytest.raises(TrainingError, match=r"With Flat\(\) there is no posterior .* prior=priors.Normal\(1.0\)"):
        Classifier(inference=inference, random_state=0).fit(x, y)
    Classifier(prior=priors.Normal(1.0, biases=priors.Normal(1.0)), inference=inference, random_state=0).fit(x, y)


def test_a_category_of_one_class_has_no_posterior_either(rng):
    x = rng.normal(size=(40, 1))
    rare = (np.arange(40) < 5).astype(float)
    y = np.where(rare > 0, 1, rng.integers(2, size=40))
    with pytest.raises(TrainingError, match="there is no posterior to draw from"):
        Classifier(inference=HMC(4, 10, 20), random_state=0).fit(np.column_stack([x, rare]), y)


def test_data_that_overlap_have_a_posterior_under_a_flat_prior(labelled):
    with warnings.catch_warnings():
        warnings.simplefilter("error", ApproximationWarning)
        Classifier(inference=HMC(4, 10, 20), random_state=0).fit(*labelled)


@pytest.mark.parametrize("prior", [priors.Flat(), priors.Normal(1.0)], ids=repr)
def test_flat_parameters_of_a_network_are_said(prior, data):
    """A unit that is switched off stays off, however far: without a prior its bias has no posterior."""
    with pytest.warns(ApproximationWarning, match=r"improper: .* biases=priors.Normal\(1.0\)"):
        Regressor(Normal(0.5), MLP((4,)), prior, HMC(2, 5, 5), random_state=0).fit(*data)


def test_a_network_under_a_proper_prior_is_quiet(data):
    with warnings.catch_warnings():
        warnings.simplefilter("error", ApproximationWarning)
        Regressor(Normal(0.5), MLP((4,)), PROPER, HMC(2, 5, 5), random_state=0).fit(*data)


def test_no_number_to_start_from_is_said(data):
    class Broken(nn.Linear):
        def forward(self, x):
            return super().forward(x) * torch.nan

    with pytest.raises(TrainingError, match=r"log p\(θ \| data\) is nan where every chain starts"):
        Regressor(Normal(0.5), lambda shape, out: Broken(shape[-1], out), PROPER, HMC(2, 5, 5)).fit(*data)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: HMC(chains=0), r"HMC\(chains=0\): chains must be an integer of 1 or more"),
        (lambda: NUTS(draws=1.5), "draws must be an integer"),
        (lambda: Langevin(warmup=-1), "warmup must be an integer of 0 or more"),
        (lambda: MetropolisHastings(thin=0), "thin must be"),
        (lambda: HMC(step_size=-1.0), "step_size must be None or a positive number"),
        (lambda: NUTS(acceptance=2.0), "acceptance must be between 0 and 1"),
    ],
)
def test_values_that_will_not_do_are_refused(make, message):
    with pytest.raises(SpecError, match=message):
        make()
