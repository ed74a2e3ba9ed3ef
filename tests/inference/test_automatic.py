from __future__ import annotations

import numpy as np
import pytest

from likely import Classifier, Regressor
from likely.inference import MAP, Ensemble, Exact, Newton, automatic
from likely.inference.training.cross_fit import _CrossFit
from likely.likelihoods import Chain, Normal, Poisson, StudentT
from likely.networks import GRU, LSTM, MLP, RNN, ConvNet, Transformer
from likely.optim import LBFGS, Adam
from likely.priors import Laplace, PerLayer, Prior
from likely.priors import Normal as NormalPrior


class _Own(Prior):
    """A density and nothing else."""

    def log_prob(self, parameters):
        return -sum(value.square().sum() for value in parameters.values())


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        (Regressor(), Exact),
        (Regressor(Normal(scale=2.0), prior=NormalPrior(1.0)), Exact),
        (Regressor(prior=Laplace(1.0)), Newton),
        (Regressor(prior=PerLayer({"weight": NormalPrior(1.0)})), Exact),
        (Regressor(Normal(scale="input")), Newton),
        (Regressor(Poisson()), Newton),
        (Regressor(StudentT()), Newton),
        (Classifier(), Newton),
        (Regressor(prior=_Own()), MAP),
        (Regressor(network=MLP((4,))), _CrossFit),
        (Classifier(network=MLP((4,))), _CrossFit),
    ],
    ids=repr,
)
def test_the_exact_method_where_there_is_one_then_the_convex_one(model, kind, rng, problem_of):
    X, y = rng.normal(size=(20, 2)), np.arange(20) % 2
    assert type(automatic(problem_of(model, X, y))) is kind


SEQUENCES = [np.ones((1 + row % 4, 2)) * row for row in range(40)]


@pytest.mark.parametrize(
    ("network", "X"),
    [
        (LSTM(), SEQUENCES),
        (GRU(8, output="mean"), np.arange(480.0).reshape(40, 6, 2)),
        (LSTM(tokens=5), np.arange(240).reshape(40, 6) % 5),
        (LSTM(), ["to be", "or not"] * 20),
    ],
    ids=["of any lengths", "of one length", "of tokens", "texts"],
)
def test_sequences_have_several_networks_trained_one_by_one(network, X, problem_of):
    chosen = automatic(problem_of(Classifier(network=network), X, np.arange(40) % 2))
    assert isinstance(chosen, Ensemble)
    assert (chosen.members, chosen.by.members, chosen.by.held) == (5, 1, 4)


def test_images_and_many_sequences_have_one_network(rng, problem_of):
    images = rng.normal(size=(40, 1, 8, 8))
    assert automatic(problem_of(Classifier(network=ConvNet((2,))), images, np.arange(40) % 2)).members == 1
    many = np.zeros((16_000, 2), dtype=int)
    chosen = automatic(problem_of(Classifier(network=RNN(2, tokens=2)), many, np.arange(16_000) % 2))
    assert type(chosen) is _CrossFit
    assert chosen.members == 1


@pytest.mark.parametrize(
    ("network", "rate"), [(LSTM(), 5e-3), (LSTM(256), 2.5e-3), (Transformer(), 2.5e-3), (GRU(4), 5e-3)], ids=repr
)
def test_sequences_take_smaller_steps_the_more_a_unit_reads(network, rate, problem_of):
    chosen = automatic(problem_of(Classifier(network=network), SEQUENCES, np.arange(40) % 2))
    assert chosen.by.optimizer == Adam(rate)


def test_members_of_a_default_tell_their_mean_history():
    X, y = np.arange(240).reshape(40, 6) % 5, np.arange(40) % 2
    model = Classifier(network=RNN(2, tokens=5), random_state=0).fit(X, y)
    told = [info["history"]["validation"] for info in model.posterior_.info["members"]]
    assert len(told) == len(model.posterior_) == 5
    shown = model.history_["validation"]
    assert len(shown) == model.n_iter_ == max(map(len, told))
    for at, value in enumerate(shown):
        assert value == pytest.approx(np.mean([own[at] for own in told if at < len(own)]))


def test_many_parameters_are_left_to_first_order_methods(rng, problem_of):
    X, y = rng.normal(size=(6, 2500)), np.arange(6) % 2
    chosen = automatic(problem_of(Classifier(), X, y))
    assert isinstance(chosen.optimizer, LBFGS)
    assert chosen.batch_size is None
    assert automatic(problem_of(Classifier(prior=Laplace(1.0)), X, y)) == MAP()


def test_a_linear_model_of_coupled_positions_reaches_its_optimum():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 3, 2)), rng.integers(2, size=(20, 3))
    model = Classifier(Chain(), prior="normal(1.0)").fit(X, y)
    assert model.posterior_.single
    assert model.posterior_.info["history"]["loss"][-1] <= model.posterior_.info["history"]["loss"][0]
