"""Sequences of any lengths and graphs are rows like any others: every inference, every answer."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from torch import nn

import likely
from likely import Classifier, Regressor, priors
from likely.core.errors import DataError, LikelyWarning, SpecError
from likely.core.spec import registered
from likely.data.graph import Graph
from likely.inference import MAP, Inference
from likely.inference.objective import Conditional, able
from likely.likelihoods import Normal
from likely.networks import GRU, LRU, LSTM, MLP, RNN, DeepSets, Transformer
from likely.optim import LBFGS, Adam

SETTLED = MAP(LBFGS(), epochs=300, batch_size=None, tol=1e-5)


class Steps(nn.Module):
    """tanh of each step, or the step as it is; then an answer for each, or for their mean."""

    def __init__(self, features, outputs, per_step, inner=True):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(features, 3), nn.Tanh()) if inner else nn.Identity()
        self.outer, self.per_step = nn.Linear(3 if inner else features, outputs), per_step

    def forward(self, x):
        hidden = self.inner(x.features)
        if self.per_step:
            return self.outer(hidden)
        total = hidden.new_zeros(len(x), hidden.shape[1]).index_add(0, x.owner, hidden)
        return self.outer(total / x.lengths.unsqueeze(1))


def by_row(in_shape, out_features):
    return Steps(in_shape[-1], out_features, per_step=False)


def by_step(in_shape, out_features):
    return Steps(in_shape[-1], out_features, per_step=True)


def settled(per_step, *arguments):
    """A fit to the minimum, of which a linear network has one, so that fits to the same sums are the same."""

    def linear(in_shape, out_features):
        return Steps(in_shape[-1], out_features, per_step, inner=False)

    model = Regressor(Normal(scale=1.0), linear, prior=priors.Normal(1.0), inference=SETTLED, random_state=0)
    return model.fit(*arguments)


@pytest.fixture(scope="module")
def sequences():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(rng.integers(1, 6), 2)) for _ in range(24)]
    return X, np.array([x[:, 0].mean() for x in X]), [x[:, 0] - x[:, 1] for x in X]


@pytest.mark.parametrize("name", able(Conditional(Normal())))
@pytest.mark.parametrize("per_step", [False, True])
def test_every_inference_takes_rows_of_any_length(sequences, name, per_step):
    X, of_rows, of_steps = sequences
    y = of_steps if per_step else of_rows
    model = Regressor(
        network=by_step if per_step else by_row, inference=registered(Inference)[name].example(), random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LikelyWarning)
        model.fit(X, y)
    predicted = model.predict(X)
    assert [np.shape(p) for p in predicted] == [np.shape(t) for t in y]
    by_distribution = model.predict_dist(X).mean.numpy().ravel()
    np.testing.assert_allclose(np.concatenate([np.ravel(p) for p in predicted]), by_distribution, rtol=1e-4, atol=1e-5)
    assert model.log_prob(X, y).shape == (len(X),)
    alone = model.predict(X[3:4])
    np.testing.assert_allclose(np.ravel(alone[0]), np.ravel(predicted[3]), rtol=1e-4, atol=1e-5)


def test_targets_of_steps_are_targets_of_rows_of_one_step(sequences):
    X, _, y = sequences
    model = settled(True, X, y)
    flat = [row[None] for x in X for row in x]
    weight = [1.0] * len(flat) + [0.0]  # of a row of two steps, so that lengths differ
    single = settled(False, [*flat, np.zeros((2, 2))], np.concatenate([*y, [0.0]]), weight)
    np.testing.assert_allclose(np.concatenate(model.predict(X)), single.predict(flat), atol=0.01)
    assert model.score(X, y) > 0.9


def test_weights_of_rows_count_at_each_of_their_steps(sequences):
    """A line through a parabola: it rises where the weights are on one side, and without weights it does not.

    The minimum is where float32 does not tell sums of squares apart any more: sqrt(1e-7) of their scale away.
    """
    X, *_ = sequences
    y = [x[:, 0] + x[:, 1] ** 2 for x in X]
    weight = np.array([2 * (x[:, 1].mean() > 0) + (i % 4 == 0) for i, x in enumerate(X)])
    chosen = np.repeat(np.arange(len(X)), weight)
    arguments = (X, y, weight), ([X[i] for i in chosen], [y[i] for i in chosen]), (X, y)
    weighted, repeated, plain = (np.concatenate(settled(True, *own).predict(X)) for own in arguments)
    np.testing.assert_allclose(weighted, repeated, atol=0.01)
    assert np.abs(weighted - plain).max() > 0.1


def test_dense_sequences_can_be_asked_of_a_model_of_any_lengths(sequences):
    X, y, _ = sequences
    model = Regressor(network=by_row, inference=MAP(epochs=2), random_state=0).fit(X, y)
    dense = np.stack([X[0]] * 3)
    np.testing.assert_allclose(model.predict(dense), model.predict([X[0]] * 3))


def test_nodes_of_one_graph_with_few_labels():
    rng = np.random.default_rng(0)
    graph = Graph(rng.normal(size=(40, 2)), rng.integers(0, 40, (2, 80)))
    labels = np.where(graph.features[:, 0].numpy() > 0, 1, 0)
    seen = np.where(np.arange(40) % 2, labels, -1)
    model = Classifier(network=by_step, inference=MAP(Adam(0.05), epochs=200), random_state=0, missing_label=-1).fit(
        graph, seen
    )
    assert model.predict(graph).shape == (40,)
    assert model.predict_proba(graph).shape == (40, 2)
    assert model.sample(graph, 3).shape == (3, 40)
    assert model.score(graph, labels) > 0.9


def test_a_model_of_sequences_is_saved_and_loaded(sequences, tmp_path):
    X, _, y = sequences
    model = Regressor(network=by_step, inference=MAP(epochs=2), random_state=0).fit(X, y)
    model.save(tmp_path / "m.likely")
    loaded = likely.load(tmp_path / "m.likely", network=by_step)
    for restored, wanted in zip(loaded.predict(X), model.predict(X), strict=True):
        np.testing.assert_array_equal(restored, wanted)


def test_answers_for_steps_show_where_the_first_rows_have_one_step():
    X = [np.zeros((steps, 2)) for steps in (1, 1, 1, 3)]
    with pytest.raises(SpecError, match=r"one entry for each row; for 2 rows it gave \(4, 1\)"):
        Regressor(network=by_step).fit(X, np.arange(4.0))


def test_what_does_not_fit_is_said(sequences):
    X, of_rows, of_steps = sequences
    model = Regressor(network=by_row, inference=MAP(epochs=1)).fit(X, of_rows)
    with pytest.raises(
        SpecError, match="network Linear cannot take sequences as rows: it takes rows of one shape; for"
    ):
        Regressor().fit(X, of_rows)
    with pytest.raises(SpecError, match="one entry for each row; for 2 rows"):
        Regressor(network=by_step).fit(X, of_rows)
    with pytest.raises(SpecError, match="one entry for each position"):
        Regressor(network=by_row).fit(X, of_steps)
    with pytest.raises(DataError, match=r"y\[0\] has \d entries, but sequence 0 has \d steps"):
        Regressor(network=by_step).fit(X, [of_steps[0][:-1] if len(X[0]) > 1 else np.zeros(2), *of_steps[1:]])
    with pytest.raises(DataError, match=r"features of shape \(3,\) at each step; the model was fitted on \(2,\)"):
        model.predict([np.zeros((1, 3)), np.zeros((2, 3))])
    with pytest.raises(DataError, match="X has graphs; the model was fitted on sequences of different lengths"):
        model.predict([Graph([[1.0, 2.0]], [])])
    with pytest.raises(DataError, match="sample_weight has shape"):
        Regressor(network=by_step).fit(X, of_steps, sample_weight=np.ones(3))
    with pytest.raises(DataError, match=r"sample_weight has entries of different lengths; .* one number for each seq"):
        Regressor(network=by_step).fit(X, of_steps, sample_weight=[np.ones(len(x)) for x in X])
    with pytest.raises(DataError, match="X has no sequences; at least one is needed"):
        model.predict(np.zeros((0, 4, 2)))
    recurrent = Regressor(network=GRU(2), inference=MAP(epochs=1)).fit(np.zeros((4, 3, 2)), np.arange(4.0))
    with pytest.raises(DataError, match=r"X has shape \(2, 0, 2\): its sequences are empty, they have no steps"):
        recurrent.predict(np.zeros((2, 0, 2)))
    with pytest.raises(DataError, match=r"X\[1\] is a list, and others are graphs"):
        Regressor(network=by_step).fit([Graph([[1.0]], []), [1.0]], [1.0, 2.0])
    dense = Regressor(network=lambda i, o: nn.Sequential(nn.Flatten(), nn.LazyLinear(o)), inference=MAP(epochs=1))
    dense.fit(np.zeros((4, 3, 2)), np.arange(4.0))
    with pytest.raises(
        DataError, match="X has sequences of different lengths; the model was fitted on rows of one shape"
    ):
        dense.predict(X)


@pytest.mark.parametrize(
    "network", [GRU(2), LRU(2, 2), Transformer(4, 2, 1, causal=True, output="last"), DeepSets((2,))]
)
def test_sequences_shorter_than_in_training_are_answered(network):
    X = np.random.default_rng(0).normal(size=(20, 6, 2))
    model = Regressor(network=network, inference=MAP(epochs=1), random_state=0).fit(X, X[:, -1, 0])
    short = model.predict(X[:, :3])
    as_list = model.posterior_.module(torch.tensor(X[:, :3], dtype=torch.float32))
    np.testing.assert_allclose(short, as_list[:, 0].numpy(), rtol=1e-5)
    with pytest.raises(DataError, match=r"X has shape \(20, 6, 1\); the model was fitted on sequences \(n, steps, 2\)"):
        model.predict(X[:, :, :1])


def test_a_prompt_of_tokens_may_be_shorter_than_the_training_texts():
    X = np.random.default_rng(0).integers(0, 5, (20, 6))
    model = Classifier(network=LSTM(2, tokens=5), inference=MAP(epochs=1), random_state=0).fit(X, X[:, 0] % 2)
    assert model.predict(X[:, :2]).shape == (20,)
    assert Classifier(network=MLP((2,)), inference=MAP(epochs=1)).fit(X, X[:, 0] % 2).predict(X).shape == (20,)
    with pytest.raises(ValueError, match="expecting 6 features"):
        Classifier(network=MLP((2,)), inference=MAP(epochs=1)).fit(X, X[:, 0] % 2).predict(X[:, :2])


@pytest.mark.parametrize(
    "network",
    [LSTM(4), GRU(4), RNN(4), LRU(4), DeepSets(), Transformer(8, 2, 1, longest=11)],
    ids=lambda network: type(network).__name__,
)
def test_sequences_of_other_lengths_are_answered_one_by_one(network):
    rng = np.random.default_rng(0)
    model = Regressor(network=network, inference=MAP(epochs=2), random_state=0)
    model.fit(rng.normal(size=(6, 8, 2)), rng.normal(size=6))
    rows = [rng.normal(size=(steps, 2)) for steps in (3, 8, 11, 1)]
    single = np.concatenate([model.predict(row[None]) for row in rows])
    np.testing.assert_allclose(model.predict(rows), single, rtol=1e-5, atol=1e-5)
    with pytest.raises(DataError, match=r"features of shape \(3,\) at each step; the model was fitted on \(2,\)"):
        model.predict([np.zeros((3, 3)), np.zeros((8, 3))])


def test_tokens_of_other_lengths_are_answered_one_by_one():
    rng = np.random.default_rng(0)
    network = Transformer(8, 2, 1, tokens=7)
    model = Classifier(network=network, inference=MAP(epochs=2), random_state=0)
    model.fit(rng.integers(0, 7, size=(6, 8)), [0, 1, 0, 1, 0, 1])
    rows = [rng.integers(0, 7, size=steps) for steps in (3, 8, 1)]
    single = np.concatenate([model.predict_proba(row[None]) for row in rows])
    np.testing.assert_allclose(model.predict_proba(rows), single, rtol=1e-5, atol=1e-5)


def test_a_message_about_sequences_names_the_model():
    X = np.zeros((4, 5, 2), np.float32)
    model = Classifier(network="lstm(hidden=2)", inference="map(epochs=1)", random_state=0).fit(X, [0, 1, 0, 1])
    with pytest.raises(DataError, match="a minimum of 1 is required by Classifier"):
        model.predict(X[:0])
