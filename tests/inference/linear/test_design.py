"""The linear view of a problem: rows and positions as regressions, rates of the prior, and solutions written back."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from likely import Regressor, priors
from likely.inference.linear.design import design_of
from likely.likelihoods import Normal
from likely.networks import MLP

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(9, 2)), RNG.normal(size=(9, 3))
PRIOR = priors.Normal(0.5)


@pytest.fixture
def design(problem_of):
    def design(y=Y[:, 0], prior=PRIOR, network="linear", **options):
        return design_of(problem_of(Regressor(Normal(), network=network, prior=prior, random_state=0), X, y, **options))

    return design


def joined(regression):
    x, y, weight = zip(*regression.blocks(), strict=True)
    return torch.cat(x), torch.cat(y), None if weight[0] is None else torch.cat(weight)


def test_one_target_is_one_regression_of_all_rows(design):
    weight = RNG.random(9)
    made = design(sample_weight=weight)
    regression = made.regression(0)
    x, y, w = joined(regression)
    assert made.outputs == 1
    assert made.parameters == 2 + 1 + 1  # weights, bias and log σ
    np.testing.assert_allclose(x, X)
    np.testing.assert_allclose(y, Y[:, 0])
    np.testing.assert_allclose(w, weight)
    assert regression.total_weight() == pytest.approx(weight.sum())


def test_several_targets_are_regressions_of_their_own(design):
    made = design(Y)
    assert made.outputs == 3
    for output in range(3):
        x, y, _ = joined(made.regression(output))
        np.testing.assert_allclose(x, X)
        np.testing.assert_allclose(y, Y[:, output])


def test_solutions_are_written_to_their_rows_of_the_layer(design):
    made = design(Y)
    for output in range(3):
        weight = torch.full((1, 2), float(output), dtype=torch.float64)
        made.write(output, weight, torch.tensor([10.0 + output]).double(), torch.tensor([-1.0 * output]).double())
    eta = made.module(torch.from_numpy(X)).detach()
    for output in range(3):
        np.testing.assert_allclose(eta[:, output, 0], output * X.sum(1) + 10 + output, rtol=1e-12)
        np.testing.assert_allclose(eta[:, output, 1], np.full(9, -1.0 * output), rtol=1e-12)


def test_rates_are_those_of_the_prior(design):
    """Normal(s) is a penalty l2 = 1/s², Laplace(b) one of l1 = 1/b."""
    assert design().regression(0).rates() == ((0.0, pytest.approx(4.0)), (0.0, 0.0))
    assert design(prior=priors.Laplace(0.5)).regression(0).rates()[0] == (pytest.approx(2.0), 0.0)


def test_networks_and_penalties_on_the_noise_have_no_linear_view(design):
    assert design(prior=priors.Normal(0.5, biases=priors.Normal(2.0))) is None
    assert design(network=MLP((3,))) is None
