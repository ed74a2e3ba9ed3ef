"""Stochastic-gradient Hamiltonian Monte Carlo with friction."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.linalg import solve_discrete_lyapunov

import likely
from likely import Regressor
from likely.core.errors import SpecError
from likely.inference import MAP, SGHMC
from likely.networks import MLP
from likely.priors import Normal as NormalPrior


def stationary(step, friction):
    """The variance of φ where r ← (1 − hγ)r − hφ + √(2hγ)ξ and φ ← φ + hr have come to rest."""
    keep = 1 - step * friction
    move = np.array([[1 - step**2, step * keep], [-step, keep]])
    kick = np.array([[step], [1.0]])
    return solve_discrete_lyapunov(move, 2 * step * friction * kick @ kick.T)[0, 0]


@pytest.mark.parametrize(("friction", "step"), [(1.0, None), (2.0, 0.2), (0.5, 0.5)])
def test_full_batches_have_the_moments_of_the_recursion(fitted, standardised, friction, step):
    """300 chains with 40 draws each, over 3,000 of them independent: means ± 0.018, variances ± 0.026; 4 of each."""
    inference = SGHMC(chains=300, draws=40, warmup=60, thin=8, batch_size=None, friction=friction, step_size=step)
    posterior = fitted(inference).posterior_
    draws = standardised(posterior)
    expected = stationary(posterior.info["step_size"], friction)
    assert 1 < expected < 1.1
    assert draws.mean(0).abs().max() <= 0.075
    torch.testing.assert_close(torch.cov(draws.T), expected * torch.eye(4).double(), rtol=0, atol=0.105)


def test_noise_of_mini_batches_is_not_added_twice(fitted, standardised, chances):
    """With half of the noise from the gradients, the mean of the variances is still right, within 12 %.

    All chains see the same batches, so that stretches of time are what is independent: the t of 25 of 80 steps each.
    One of four p-values is below 1e-6 in one of 250,000 runs.
    """
    inference = SGHMC(chains=50, draws=100, warmup=200, thin=20, batch_size=40)
    posterior = fitted(inference).posterior_
    draws = standardised(posterior)
    share = posterior.info["step_size"] * posterior.info["gradient_noise"] / 2
    assert 0.3 < share <= 0.5 + 1e-9
    assert float(draws.var(0).mean()) == pytest.approx(stationary(posterior.info["step_size"], 1.0), rel=0.12)
    assert chances(draws.view(50, 100, 4).mean(0).view(25, 4, 4), 0.0).min() > 1e-6


def test_intervals_are_close_to_the_closed_form(table, exact, fitted):
    X, _ = table
    ours, closed = fitted(SGHMC(chains=8, draws=60)).predict_dist(X), exact.predict_dist(X)
    torch.testing.assert_close(ours.variance, closed.variance, rtol=0.03, atol=0)


def test_the_same_seed_gives_the_same_draws_and_a_file_keeps_them(table, tmp_path):
    X, y = table
    inference = SGHMC(2, 4, warmup=3, thin=2, batch_size=32, schedule="cyclical", cycles=2, by=MAP(epochs=2))
    model, again = (
        Regressor(network=MLP((4,)), prior=NormalPrior(), inference=inference, random_state=5).fit(X, y)
        for _ in range(2)
    )
    answer = model.predict(X)
    np.testing.assert_array_equal(again.predict(X), answer)
    model.save(tmp_path / "model.likely")
    np.testing.assert_array_equal(likely.load(tmp_path / "model.likely").predict(X), answer)


def test_friction_is_positive():
    with pytest.raises(SpecError, match=r"SGHMC\(friction=0.0\): friction must be a positive number"):
        SGHMC(friction=0.0)
