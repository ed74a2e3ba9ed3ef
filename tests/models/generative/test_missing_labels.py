"""Labels that are missing are summed out: Bayes' rule over all labels."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from likely import VAE
from likely.core.random import isolated
from likely.inference import MAP
from likely.models.generative.missing_labels import MissingLabels
from likely.networks import MLP
from likely.optim import Adam

RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 2, 80)
ROWS = RNG.normal(size=(80, 2)) + 4.0 * LABELS[:, None]
NAMES = np.array(["low", "high"], dtype=object)[LABELS]


@pytest.fixture(scope="module")
def fitted():
    known = NAMES.copy()
    known[::2] = None
    model = VAE(latent=2, encoder=MLP((8,)), decoder=MLP((8,)), inference=MAP(Adam(0.01), epochs=60), random_state=0)
    return model.fit(ROWS, known)


def test_frequencies_are_those_of_the_labels_that_are_known(fitted):
    with fitted.posterior_.lent() as module:
        frequency = module.log_frequency.exp()
        supervision = float(module.supervision)
    expected = np.mean(NAMES[1::2] == "high")
    assert sorted(frequency.tolist()) == pytest.approx(sorted([expected, 1 - expected]), rel=1e-5)
    assert supervision == pytest.approx(2.0)  # every second label is known


class TwoNormals(torch.nn.Module):
    """p(x | y) in closed form, in place of a VAE: N(0, 1) and N(3, 1)."""

    def log_prob(self, x, condition, draws):
        return torch.distributions.Normal(3.0 * condition[:, 1], 1.0).log_prob(x[:, 0]).expand(draws, -1)


def test_a_row_without_a_label_has_the_mean_over_labels():
    """p(x) = Σ_y p(y) p(x | y), and p(y | x) is Bayes' rule."""
    module = MissingLabels(TwoNormals(), 2, None)
    module.log_frequency.copy_(torch.tensor([0.25, 0.75]).log())
    x = torch.linspace(-2, 5, 7)[:, None]
    parts = torch.stack([torch.distributions.Normal(mean, 1.0).log_prob(x[:, 0]) for mean in (0.0, 3.0)], -1)
    joint = parts + module.log_frequency
    torch.testing.assert_close(module.log_prob(x, torch.zeros(7, 2), 3), torch.logsumexp(joint, -1).expand(3, -1))
    torch.testing.assert_close(module.label_probabilities(x, 3), torch.softmax(joint, -1))
    named = torch.nn.functional.one_hot(torch.ones(7).long(), 2).float()
    torch.testing.assert_close(module.log_prob(x, named, 1)[0], parts[:, 1])


def test_labels_of_rows_far_apart_are_found(fitted):
    """Bayes' rule misses 2 of 1,000 rows; 5 of 40 are missed in 1 of a million seeds even if half a percent are."""
    assert np.mean(fitted.predict(ROWS[::2]) == NAMES[::2]) > 0.9


@torch.no_grad()
def test_training_on_a_missing_label_raises_a_bound_on_log_p(fitted, seed):
    """E Σ_y q(y | x) [ELBO_y + log p(y) − log q(y | x)] ≤ log p(x) for each of 80 rows, with 6 standard errors of both.

    Their errors are those of 100 and 1,000 draws, so t rather than normal: false alarm below 1e-5 in all.
    """
    module, draws = fitted.posterior_.module_of(0).double(), 100
    x, gone = torch.as_tensor(ROWS), torch.zeros(80, 2, dtype=torch.float64)
    with isolated(seed):
        bounds = torch.stack([module(x, gone) for _ in range(draws)])
        weights = module.log_prob(x, gone, 10 * draws)
    log_p = torch.logsumexp(weights, 0) - math.log(len(weights))
    error = torch.sqrt(bounds.var(0) / draws + (weights - log_p).exp().var(0) / len(weights))
    assert bool((bounds.mean(0) < log_p + 6 * error).all())
