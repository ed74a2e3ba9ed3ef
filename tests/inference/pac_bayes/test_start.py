"""A predictor whose start has seen none of the rows that the bound counts."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from likely import Classifier, Regressor
from likely.inference.pac_bayes.start import without_data
from likely.likelihoods import Normal
from likely.networks import MLP

RNG = np.random.default_rng(0)
X, Y = RNG.normal(3.0, 2.0, size=(100, 2)), RNG.normal(size=100)


@pytest.fixture
def moved(problem_of):
    def moved(model, X, y):
        return without_data(problem_of(model.set_params(random_state=0), X, y))

    return moved


def test_labels_start_at_equal_probabilities_and_keep_all_rows(moved):
    """However rare a class is: 90 of 100 labels are 0 here."""
    problem, reference = moved(Classifier(), X, np.arange(100) >= 90)
    assert len(problem.data) == 100
    torch.testing.assert_close(reference.double(), torch.zeros(1, dtype=torch.float64), rtol=0, atol=1e-12)
    problem, reference = moved(Classifier(), X, np.minimum(np.arange(100) // 45, 2))
    torch.testing.assert_close(reference - reference[0], torch.zeros_like(reference), rtol=0, atol=1e-12)


def test_quantities_start_at_the_mean_of_a_tenth_that_is_left_out(moved):
    problem, reference = moved(Regressor(Normal(1.0)), X, Y)
    left = problem.data.rows
    held = np.setdiff1d(np.arange(100), left.numpy())
    assert len(left) == 90
    assert len(held) == 10
    assert float(reference[0]) == pytest.approx(Y[held].mean(), rel=1e-5)
    assert problem.module().linear.bias.item() == pytest.approx(Y[held].mean(), rel=1e-5)


def test_rows_that_count_have_no_part_in_the_start_of_a_network(moved):
    """Rows whose targets and inputs change leave it as it is, as long as they are not those held out."""
    network = MLP((4,))
    problem, _ = moved(Classifier(network=network), X, Y > 0)
    counted = problem.data.rows.numpy()
    other = X.copy()
    other[counted] += 100.0
    again, _ = moved(Classifier(network=network), other, Y > 0)
    for name, value in problem.module(0).state_dict().items():
        torch.testing.assert_close(again.module(0).state_dict()[name], value)
    assert np.array_equal(again.data.rows.numpy(), counted)
