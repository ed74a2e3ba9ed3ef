"""Stochastic-gradient Langevin dynamics: approximate draws, with a bias that is known where the posterior is normal."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import likely
from likely import Classifier, Regressor
from likely.core.errors import SpecError, TrainingError
from likely.inference import MAP, SGLD, Ensemble
from likely.likelihoods import Normal
from likely.networks import MLP
from likely.optim import Adam
from likely.priors import Normal as NormalPrior


def test_full_batches_have_the_moments_of_the_recursion(fitted, standardised):
    """x ← (1 − ε/2)x + √ε·ξ has mean 0 and variance 1/(1 − ε/4). 300 chains, 40 draws each, about 2 steps of memory.

    Correlations within a chain leave more than 6,000 independent draws: means ± 0.013, variances ± 0.018; 5 of each.
    """
    model = fitted(SGLD(chains=300, draws=40, warmup=50, thin=5, batch_size=None))
    draws = standardised(model.posterior_)
    step = model.posterior_.info["step_size"]
    assert step == pytest.approx(0.4, rel=1e-3)
    assert draws.mean(0).abs().max() <= 0.065
    covariance = torch.cov(draws.T)
    torch.testing.assert_close(covariance, torch.eye(4).double() / (1 - step / 4), rtol=0, atol=0.09)


def test_small_steps_leave_the_posterior_as_it_is(fitted, standardised):
    """ε = 0.02 gives variances 0.5 % too large. Chains start in the posterior, so 400 of them are 400 draws each time:
    variances ± 7 % each; the trace over 4 dimensions and 10 draws far apart ± 1.1 %; 5 of that. Draws 40 steps apart
    correlate by 0.99⁴⁰ = 0.67, so a mean of 10 in 400 chains is ± 0.031: four within 5 of that, but for 2 in a million.
    """
    inference = SGLD(chains=400, draws=10, warmup=0, thin=40, batch_size=None, step_size=0.02)
    draws = standardised(fitted(inference).posterior_)
    assert draws.mean(0).abs().max() <= 0.155
    assert float(draws.var(0).mean()) == pytest.approx(1 / (1 - 0.02 / 4), abs=0.055)


def test_mini_batches_widen_as_far_as_their_noise_says(fitted, standardised):
    """Variance (1 + εc/4)/(1 − ε/4), with c averaged over the coordinates; chains share batches, so time must average.

    The mean of four variances over about 100 stretches of memory of each of 50 chains: within 10 %.
    """
    inference = SGLD(chains=50, draws=300, warmup=200, thin=10, batch_size=50)
    posterior = fitted(inference).posterior_
    draws = standardised(posterior)
    step, noise = posterior.info["step_size"], posterior.info["gradient_noise"]
    assert 1.5 < noise < 8  # of the order N/b − 1 = 3 where the model is right
    assert float(draws.var(0).mean()) == pytest.approx((1 + step * noise / 4) / (1 - step / 4), rel=0.1)
    assert draws.mean(0).abs().max() <= 0.15


def test_intervals_are_close_to_the_closed_form(table, exact, fitted):
    model = fitted(SGLD(chains=8, draws=60, batch_size=None))
    X, _ = table
    ours, closed = model.predict_dist(X), exact.predict_dist(X)
    torch.testing.assert_close(ours.variance, closed.variance, rtol=0.03, atol=0)
    assert ((ours.mean - closed.mean).abs() <= 0.3 * (closed.variance - 0.25).sqrt()).all()


def test_without_preconditioning_steps_suit_the_stiffest_direction(table, fitted):
    posterior = fitted(SGLD(precondition=False, chains=2, draws=2, warmup=0, thin=1, batch_size=None)).posterior_
    X = np.column_stack([table[0], np.ones(200)])
    hessian = X.T @ X / 0.25 + np.diag([1, 1, 1, 1 / 9])
    assert posterior.info["stiffness"] == pytest.approx(np.linalg.eigvalsh(hessian)[-1], rel=0.01)
    assert posterior.info["step_size"] * posterior.info["stiffness"] == pytest.approx(0.4)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_units_of_the_columns_do_not_matter(table, exact, scale):
    """Without a prior, draws in other units are the same draws."""
    X, y = table
    inference = SGLD(chains=2, draws=5, warmup=20, thin=2, batch_size=50)
    plain, other = (
        Regressor(Normal(0.5), inference=inference, random_state=0).fit(rows, y).predict_dist(rows).mean
        for rows in (X, X * scale)
    )
    noise = (exact.predict_dist(X).variance - 0.25).sqrt()
    assert ((plain - other).abs() <= 1e-2 * noise).all()


# --- schedules -------------------------------------------------------------------------------------------------------
def test_decreasing_steps_weigh_the_draws(fitted):
    posterior = fitted(SGLD(chains=2, draws=10, warmup=0, thin=3, schedule="decreasing")).posterior_
    weights = posterior.weights.reshape(2, 10)
    assert torch.equal(weights[0], weights[1])
    assert float(weights.sum()) == pytest.approx(1)
    steps = np.arange(2, 30, 3)
    expected = (1 + 20 * steps / 30) ** (-1 / 3)
    np.testing.assert_allclose(weights[0], expected / expected.sum() / 2, rtol=1e-6)


def test_cycles_keep_draws_of_their_later_halves():
    inference = SGLD(draws=7, warmup=30, thin=10, schedule="cyclical", cycles=3)
    kept = sorted(inference._kept())
    assert len(kept) == 7
    assert kept[-1] == 99
    assert all(inference._phase(t) >= 0.45 for t in kept)
    assert [round(inference._factor(t), 2) for t in (0, 25, 50)] == [1.0, 0.15, 0.5]


class _Product(nn.Module):
    """η = a·b·x, the same for (a, b) and (−a, −b)."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Parameter(torch.tensor([[1.0]])), nn.Parameter(torch.tensor([[1.0]]))

    def forward(self, x):
        return x * self.a * self.b


def product(in_shape, out_features):
    return _Product()


@pytest.mark.filterwarnings("ignore:The chains do not agree:likely.core.errors.ConvergenceWarning")
def test_cycles_visit_both_modes(seed):
    """Two mirrored modes, 1.7 nats above the saddle between them: each has its fraction of the draws.

    If each of 4 × 10 cycles stays in a mode of its own, the fraction of one is ½ ± 0.08: five of those are allowed.
    So few visits of a chain differ between chains, and R-hat says so for some seeds.
    """
    X, y = np.linspace(-1, 1, 21)[:, None], 0.8 * np.linspace(-1, 1, 21)
    inference = SGLD(chains=4, draws=100, warmup=100, thin=20, schedule="cyclical", cycles=10, batch_size=None)
    model = Regressor(Normal(1.0), product, NormalPrior(1.0), inference, random_state=seed, standardise=False).fit(X, y)
    factors = model.posterior_.parameters["network.a"]
    assert 0.1 < float((factors > 0).double().mean()) < 0.9


# --- networks, files, errors ----------------------------------------------------------------------------------------
@pytest.mark.filterwarnings("ignore::likely.core.errors.ConvergenceWarning")
def test_draws_of_a_network_disagree_where_there_are_no_rows(seed):
    """On a wave with a gap, functions differ more inside it (1.5 to 5 times as much for 8 seeds).

    And log p of the average over draws is the mean of their log p at least (Jensen).
    """
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, size=(80, 1))
    X = X[np.abs(X[:, 0]) > 0.7]
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=len(X))
    chains = SGLD(by=MAP(Adam(0.02), epochs=1000), draws=50, thin=20, batch_size=None)
    network = MLP((12,), activation="tanh")
    model = Regressor(network=network, prior=NormalPrior(1.0), inference=chains, random_state=seed).fit(X, y)
    line = torch.linspace(-2.5, 2.5, 101)[:, None]
    with torch.no_grad():
        spread = model.posterior_.eta(line)[..., 0].std(0).flatten()
    inside = line[:, 0].abs() < 0.3
    assert spread[inside].mean() > spread[line[:, 0].abs() > 0.9].mean()
    truth = torch.sin(2 * line[:, 0])
    with torch.no_grad():
        own = model.likelihood_.log_prob(model.posterior_.eta(line), truth)
    assert (model.log_prob(line.numpy(), truth.numpy()) >= own.mean(0).numpy() - 1e-5).all()


def test_the_same_seed_gives_the_same_draws_and_a_file_keeps_them(table, tmp_path):
    X, y = table
    inference = SGLD(chains=2, draws=4, warmup=3, thin=2, batch_size=32, by=MAP(epochs=2))
    model, again = (
        Classifier(network=MLP((4,), norm="batch"), prior=NormalPrior(), inference=inference, random_state=5).fit(
            X, y > 0
        )
        for _ in range(2)
    )
    before = torch.get_rng_state()
    answer = model.predict_proba(X)
    assert torch.equal(torch.get_rng_state(), before)
    np.testing.assert_array_equal(again.predict_proba(X), answer)
    model.save(tmp_path / "model.likely")
    loaded = likely.load(tmp_path / "model.likely")
    np.testing.assert_array_equal(loaded.predict_proba(X), answer)
    assert len(loaded.posterior_) == 8


def test_an_ensemble_of_chains_starts_from_several_modes(table):
    inference = Ensemble(2, SGLD(chains=2, draws=3, warmup=0, thin=1, by=MAP(epochs=2)))
    model = Regressor(network=MLP((4,)), inference=inference, random_state=0).fit(*table)
    assert len(model.posterior_) == 12


def test_a_step_that_is_far_too_long_is_an_error_with_a_remedy(fitted):
    inference = SGLD(step_size=1e307, precondition=False, warmup=5)
    message = r"SGLD diverged by step \d+, .* Try SGLD\(step_size=1e\+306\), a prior on the weights"
    with pytest.raises(TrainingError, match=message):
        fitted(inference)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"chains": 0}, r"SGLD\(chains=0\): chains must be a positive integer"),
        ({"step_size": -1.0}, r"step_size must be a positive number, or None to have it chosen"),
        ({"schedule": "cosine"}, r'schedule must be "constant", "decreasing" or "cyclical"'),
        ({"warmup": -1}, r"warmup must be 0 or more steps"),
        ({"schedule": "cyclical", "cycles": 20, "draws": 10}, r"cycles must be at most draws=10"),
        ({"batch_size": 0}, r"batch_size must be a positive integer, or None"),
    ],
)
def test_bad_arguments_are_named(options, message):
    with pytest.raises(SpecError, match=message):
        SGLD(**options)
