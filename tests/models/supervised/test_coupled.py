"""Labels of whole rows: a likelihood that couples the positions of a row, in a classifier."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

import likely
from likely import Classifier
from likely.core.errors import DataError, LikelyWarning, SpecError
from likely.data import Graph
from likely.inference import HMC, MAP, Ensemble
from likely.inference.objective import Joint, able
from likely.likelihoods import Categorical, Chain
from likely.networks import GCN, LSTM, MLP
from likely.optim import Adam
from likely.priors import Normal

QUICK = MAP(Adam(0.05), epochs=20, batch_size=None)
FIRM = Normal(1.0, biases=Normal(1.0))


@pytest.fixture
def tagged():
    """Sequences of a chain of three labels that rarely changes, seen through noise: in a list, and in an array."""
    rng = np.random.default_rng(0)
    rows = []
    for length in rng.integers(1, 9, 60):
        labels = [rng.integers(3)]
        for _ in range(length - 1):
            labels.append(labels[-1] if rng.random() < 0.9 else rng.integers(3))
        rows.append(np.array(labels))
    X = [np.eye(3)[labels] + rng.normal(size=(len(labels), 3)) for labels in rows]
    return X, rows


@pytest.fixture
def even(tagged):
    """The same as rows of four positions."""
    rng = np.random.default_rng(1)
    y = np.repeat(rng.integers(3, size=(80, 1)), 4, 1)
    y[:, 3] = np.where(rng.random(80) < 0.2, rng.integers(3, size=80), y[:, 3])
    return np.eye(3)[y] + rng.normal(size=(80, 4, 3)), y


def model_of(inference=QUICK, **given):
    return Classifier(Chain(), LSTM(4, output="each"), FIRM, inference, random_state=0, **given)


@pytest.mark.parametrize("inference", [QUICK, Ensemble(2, by=QUICK)], ids=["map", "ensemble"])
def test_every_answer_is_of_whole_rows(tagged, inference, tmp_path):
    X, y = tagged
    model = model_of(inference).fit(X, y)
    chance, labels, log_prob = model.predict_proba(X), model.predict(X), model.log_prob(X, y)
    assert [len(own) for own in labels] == [len(own) for own in y]
    assert all(own.shape == (len(row), 3) for own, row in zip(chance, y, strict=True))
    np.testing.assert_allclose(np.concatenate(chance).sum(1), 1.0, rtol=1e-5)
    np.testing.assert_allclose(np.concatenate(model.predict_log_proba(X)), np.log(np.concatenate(chance)), rtol=1e-5)
    assert log_prob.shape == (60,)
    rows = model.predict_dist(X)
    assert rows.batch_shape == (60,)
    flat = torch.from_numpy(np.concatenate(y))
    np.testing.assert_allclose(rows.log_prob(flat).numpy(), log_prob, rtol=1e-5)
    np.testing.assert_array_equal(rows.mode.numpy(), np.concatenate(labels))
    draws = model.sample(X, 3, random_state=0)
    assert [own.shape for own in draws] == [(3, len(row)) for row in y]
    assert model.score(X, y) == pytest.approx(np.mean(np.concatenate(labels) == flat.numpy()))
    model.save(tmp_path / "model.likely")
    loaded = likely.load(tmp_path / "model.likely")
    np.testing.assert_array_equal(loaded.log_prob(X, y), log_prob)
    np.testing.assert_array_equal(np.concatenate(loaded.predict(X)), np.concatenate(labels))


def test_answers_are_the_same_in_blocks_and_one_by_one(tagged, monkeypatch):
    X, y = tagged
    model = model_of().fit(X, y)
    whole = model.log_prob(X, y), np.concatenate(model.predict(X))
    monkeypatch.setattr("likely.models.supervised.base.BLOCK", 1)
    monkeypatch.setattr("likely.models.supervised.base.LEAST", 7)
    np.testing.assert_allclose(model.log_prob(X, y), whole[0], rtol=1e-5)
    np.testing.assert_array_equal(np.concatenate(model.predict(X)), whole[1])


@pytest.mark.parametrize("network", ["linear", MLP((4,)), "flat"], ids=["linear", "mlp", "flat"])
def test_rows_of_one_length_are_arrays(even, network):
    X, y = even
    X = X[:, 0] if network == "flat" else X
    network = "linear" if network == "flat" else network
    model = Classifier(Chain(), network, "normal(1.0)", **({} if network == "linear" else {"inference": QUICK}))
    model.set_params(random_state=0).fit(X, y)
    assert model.predict(X).shape == y.shape
    assert model.predict_proba(X).shape == (*y.shape, 3)
    assert model.log_prob(X, y).shape == (80,)
    assert model.sample(X, 2).shape == (2, *y.shape)
    np.testing.assert_allclose(model.predict_dist(X).log_prob(torch.from_numpy(y)), model.log_prob(X, y), rtol=1e-4)
    assert model.posterior_.parameters["shared"].shape == (1, 15)


def test_neighbours_say_what_x_does_not(even):
    X, y = even
    alone = Classifier(Categorical(), prior="normal(1.0)").fit(X, y)
    chain = Classifier(Chain(), prior="normal(1.0)").fit(X, y)
    assert chain.score(X, y) > alone.score(X, y) + 0.1
    assert chain.log_prob(X, y).mean() > alone.log_prob(X, y).mean() + 0.5


def test_a_linear_chain_is_fitted_to_its_optimum(even):
    """At the mode of a convex problem the gradient of the log-likelihood is that of the penalty."""
    X, y = even
    model = Classifier(Chain(), prior=FIRM).fit(X, y)
    parameters = {name: value[0].double().requires_grad_() for name, value in model.posterior_.parameters.items()}
    eta = torch.from_numpy(X) @ parameters["network.weight"].T + parameters["network.bias"]
    eta = torch.cat([eta, parameters["shared"].expand(*eta.shape[:-1], -1)], -1).flatten(0, 1)
    rows = Chain().joint_log_prob(eta, torch.from_numpy(y).double().flatten(), torch.arange(0, 321, 4))
    gradient = torch.autograd.grad(rows.sum() + FIRM.log_prob(parameters), list(parameters.values()))
    assert max(float(part.abs().max()) for part in gradient) < 1e-3 * len(X)


def test_one_label_for_each_row_is_categorical(even):
    X, y = even[0][:, 0], even[1][:, 0]
    chain, alone = (Classifier(likelihood).fit(X, y) for likelihood in (Chain(), Categorical()))
    np.testing.assert_array_equal(chain.predict_proba(X), alone.predict_proba(X))
    assert isinstance(chain.predict_dist(X), torch.distributions.Categorical)


def test_missing_labels_are_summed_out(tagged):
    X, y = tagged
    model = model_of().fit(X, y)
    row = next(i for i, own in enumerate(y) if len(own) > 2)
    some = [own.copy() for own in y]
    some[row][1] = -1
    model.set_params(missing_label=-1)
    known = model.log_prob(X, some)[row]
    every = []
    for label in range(3):
        some[row][1] = label
        every.append(model.log_prob(X, some)[row])
    assert known == pytest.approx(np.logaddexp.reduce(every), rel=1e-5)
    nothing = [np.full(len(own), -1) for own in y]
    nothing[0] = y[0]
    np.testing.assert_allclose(model.log_prob(X, nothing)[1:], 0.0, atol=1e-5)


def test_a_fit_learns_from_rows_with_gaps(tagged):
    X, y = tagged
    rng = np.random.default_rng(2)
    gaps = [np.where(rng.random(len(own)) < 0.4, -1, own) for own in y]
    whole, some = model_of().fit(X, y), model_of(missing_label=-1).fit(X, gaps)
    assert some.score(X, y) > whole.score(X, y) - 0.15


def test_a_weight_of_two_is_a_row_twice(even):
    X, y = even
    weight = np.where(np.arange(80) < 10, 2.0, 1.0)
    twice = np.concatenate([X, X[:10]]), np.concatenate([y, y[:10]])
    by_weight = Classifier(Chain(), prior=FIRM).fit(X, y, sample_weight=weight)
    by_rows = Classifier(Chain(), prior=FIRM).fit(*twice)
    np.testing.assert_allclose(by_weight.predict_proba(X), by_rows.predict_proba(X), atol=0.01)


@pytest.mark.parametrize("name", sorted(able(Joint(Chain()))))
def test_every_inference_that_says_so_fits(even, name):
    X, y = even[0][:24], even[1][:24]
    model = Classifier(Chain(), "linear", FIRM, able(Joint(Chain()))[name].example(), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LikelyWarning)  # few steps
        model.fit(X, y)
    assert np.isfinite(model.log_prob(X, y)).all()
    assert model.predict(X).shape == y.shape


@pytest.mark.parametrize("name", ["exact", "newton", "distill", "pac_bayes"])
def test_an_inference_that_needs_single_targets_names_those_that_do_not(even, name):
    with pytest.raises(SpecError, match=r"needs .*; a model whose positions Chain\(classes=3\) couples .*: use .*MAP"):
        Classifier(Chain(), inference=name).fit(*even)


def test_chains_sample_the_posterior_of_a_tagger(tagged):
    X, y = tagged[0][:12], tagged[1][:12]
    model = model_of(HMC(chains=2, draws=4, warmup=4))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LikelyWarning)
        model.fit(X, y)
    assert np.isfinite(model.log_prob(X, y)).all()


def test_labels_without_an_order_are_refused():
    rng = np.random.default_rng(0)
    graph = Graph(rng.normal(size=(6, 2)), np.array([[0, 1, 2], [1, 2, 3]]))
    with pytest.raises(
        DataError, match=r"Chain\(classes=2\) couples labels that follow one another; nodes of a graph do"
    ):
        Classifier(Chain(), GCN((4,)), inference=QUICK).fit(graph, [0, 1, 0, 1, 0, 1])
    X, y = rng.normal(size=(8, 3)), rng.integers(2, size=(8, 2, 2))
    with pytest.raises(DataError, match=r"positions \(2, 2\) do not"):
        Classifier(Chain(), MLP((4,)), inference=QUICK).fit(X, y)
