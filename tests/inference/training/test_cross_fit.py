"""Cross-fitting: what a member learns from, when it stops, and what its constants are; and the rule of "auto"."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from sklearn.datasets import load_diabetes
from torch import nn

from likely import Classifier, Regressor
from likely.inference import MAP, Laplace, automatic
from likely.inference.dataset import Batch
from likely.inference.objective import Conditional
from likely.inference.training.cross_fit import REPORTS, _Constants, _CrossFit, _Folds
from likely.likelihoods import Normal, Poisson
from likely.networks import LSTM, MLP
from likely.optim import Adam, AdamW
from likely.priors import Normal as NormalPrior


@pytest.fixture
def problem(problem_of):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(45, 2))
    return problem_of(Regressor(network=MLP((4,)), random_state=0), X, X[:, 0])


@pytest.mark.parametrize(
    ("rows", "members", "batch_size", "held"),
    [(20, 8, 32, 2), (999, 8, 32, 124), (1_000, 4, 64, 200), (4_000, 4, 128, 800), (20_000, 4, 256, 2_000)],
)
def test_members_and_batches_go_by_the_rows_of_a_table(rows, members, batch_size, held, problem_of):
    chosen = automatic(
        problem_of(Regressor(network=MLP((4,))), np.arange(2.0 * rows).reshape(rows, 2), np.arange(rows))
    )
    assert (chosen.members, chosen.batch_size, chosen.held) == (members, batch_size, held)
    assert chosen.steps >= 1_500


def test_wide_layers_take_smaller_steps_and_a_prior_replaces_decay(problem_of):
    X, y = np.arange(60.0).reshape(30, 2), np.arange(30)
    assert automatic(problem_of(Regressor(network=MLP((64,))), X, y)).optimizer == AdamW(5e-3, weight_decay=0.5)
    assert automatic(problem_of(Regressor(network=MLP((256,))), X, y)).optimizer == AdamW(2.5e-3, weight_decay=0.5)
    chosen = automatic(problem_of(Regressor(network=MLP((64,)), prior=NormalPrior(1.0)), X, y))
    assert chosen.optimizer == Adam(5e-3)


def test_few_rows_are_all_learned_from_and_sequences_train_one_by_one(problem_of):
    assert automatic(problem_of(Regressor(network=MLP((4,))), np.arange(19.0)[:, None], np.arange(19))) == MAP()
    chosen = automatic(problem_of(Regressor(network=LSTM(2)), np.arange(120.0).reshape(30, 4, 1), np.arange(30)))
    assert (chosen.members, chosen.by.members, chosen.by.held) == (5, 1, 3)


def test_a_mode_is_one_where_one_is_asked_for(problem):
    assert automatic(problem, mode=True) == MAP()
    X = np.random.default_rng(0).normal(size=(25, 1))
    prior = NormalPrior(1.0, biases=NormalPrior(1.0))  # of a unit that is 0 in every row only it speaks
    assert len(Regressor(Normal(1.0), MLP((2,)), prior, Laplace(), 0).fit(X, X[:, 0]).posterior_) == 1


def test_a_member_learns_from_every_row_but_its_fold(problem):
    run = _Folds(problem, MAP(batch_size=16, steps=10), [3, 4, 5, 6, 7], 9, 250)
    held = run.held_out[0].x  # (members, 9, 2)
    everything = {tuple(row) for row in problem.data.x.tolist()}
    assert {tuple(row) for row in held.reshape(-1, 2).tolist()} == everything
    index = torch.cat([run.batches.next() for _ in range(run.batches.count)], -1)
    for rows, fold in zip(index, held, strict=True):
        learned = [tuple(row) for row in problem.data.x[rows].tolist()]
        assert len(learned) == len(set(learned)) == 36
        assert set(learned) == everything - {tuple(row) for row in fold.tolist()}


def test_constants_go_to_those_of_the_rows_they_are_shown():
    generator = torch.Generator().manual_seed(0)
    y, weight = torch.randn(3, 20, generator=generator).double() * 4, torch.rand(3, 20, generator=generator).double()
    rows = Batch(torch.zeros(3, 20, 1), y, weight)
    constants = _Constants(Conditional(Normal()), torch.zeros(1), float(weight.sum()))
    for _ in range(20):
        constants.follow([torch.zeros(3, 20, 2).double()], [rows])
    expected = 0.5 * ((weight * y.square()).sum() / weight.sum()).log()
    torch.testing.assert_close(constants.values.detach(), expected.reshape(1), rtol=0, atol=1e-4)


def test_noise_is_known_as_noise(seed):
    """By the means of 300 fresh rows: a normal error of the log score is below 0.15 but for one seed in 10⁴."""
    rng = np.random.default_rng(seed)
    X, noise, coin = rng.normal(size=(400, 5)), 3 * rng.normal(size=400), rng.integers(2, size=400)
    model = Regressor(network=MLP(), random_state=seed).fit(X[:100], noise[:100])
    assert model.log_prob(X[100:], noise[100:]).mean() > -math.log(3 * math.sqrt(2 * math.pi * math.e)) - 0.25
    labels = Classifier(network=MLP(), random_state=seed).fit(X[:100], coin[:100])
    assert labels.log_prob(X[100:], coin[100:]).mean() > -math.log(2) - 0.2


def test_on_a_small_linear_table_it_is_as_good_as_the_linear_model():
    X, y = load_diabetes(return_X_y=True, scaled=False)
    test = np.arange(len(y)) % 3 == 0
    network = Regressor(network=MLP(), random_state=0).fit(X[~test], y[~test])
    linear = Regressor().fit(X[~test], y[~test])
    gap = linear.log_prob(X[test], y[test]) - network.log_prob(X[test], y[test])
    assert gap.mean() < 3 * gap.std() / math.sqrt(test.sum())
    assert len(network.posterior_) in (8, 9)
    history = network.posterior_.info["history"]
    assert min(history["validation"]) < history["validation"][0]


def test_training_ends_when_waiting_is_in_vain_and_tells_its_way(problem):
    calm = problem.with_(data=problem.data.to(torch.float32))
    posterior = _CrossFit(3, Adam(1e-12), 16, 5_000, 5).fit(calm)
    every = math.ceil(5_000 / REPORTS)
    assert len(posterior.info["history"]["validation"]) <= math.ceil(1.6 * 250 / every) + 1
    assert len(posterior) == 3


def test_a_network_that_cannot_be_stacked_is_trained_once(seed):
    class Looped(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 1)

        def forward(self, x):
            return self.layer(x) * (1.0 if float(x.detach().sum()) > 1e9 else 2.0)  # vmap has no such question

    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 2))
    model = Regressor(Poisson(), Looped(), random_state=0).fit(X, rng.poisson(1.0, 40), sample_weight=rng.random(40))
    assert len(model.posterior_) <= 2  # the affine map may be another one


def test_the_same_seed_gives_the_same_members():
    X = np.linspace(0.0, 1.0, 40)[:, None]
    inference = _CrossFit(3, Adam(), 16, 20, 5)
    model = Regressor(network=MLP((4,)), inference=inference, random_state=3)
    first, second = (model.fit(X, X[:, 0]).predict(X) for _ in range(2))
    np.testing.assert_array_equal(first, second)
