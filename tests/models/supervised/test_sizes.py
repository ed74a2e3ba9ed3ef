"""Images of one channel may come without it; images and sequences of other sizes where the network allows."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from sklearn.metrics import r2_score
from torch import nn

import likely
from likely import Classifier, Regressor
from likely.core.errors import DataError, LikelyWarning
from likely.inference import MAP
from likely.likelihoods import Chain, Poisson
from likely.networks import LRU, LSTM, MLP, RNN, ConvNet, ResNet, Transformer, UNet

RNG = np.random.default_rng(0)
IMAGES, LABELS = RNG.normal(size=(20, 8, 8)), np.arange(20) % 2


@pytest.mark.parametrize("network", [ConvNet((4,)), ResNet((4,), blocks=1)])
def test_squares_are_grey_images_with_a_word(network):
    model = Classifier(network=network, inference=MAP(epochs=1), random_state=0)
    with pytest.warns(LikelyWarning, match=r"taken as grey images \(n, 1, 8, 8\)"):
        plain = model.fit(IMAGES, LABELS).predict_proba(IMAGES)
    assert model.in_shape_ == (1, 8, 8)
    np.testing.assert_array_equal(model.fit(IMAGES[:, None], LABELS).predict_proba(IMAGES), plain)


def test_series_and_flat_networks_are_as_they_were():
    series = Classifier(network=ConvNet((4,)), inference=MAP(epochs=1), random_state=0).fit(IMAGES[:, :3], LABELS)
    assert series.in_shape_ == (3, 8)
    with pytest.raises(DataError, match="8 features"):
        series.predict(IMAGES)
    flat = Classifier(network=MLP((4,)), inference=MAP(epochs=1), random_state=0).fit(IMAGES.reshape(20, -1), LABELS)
    assert flat.in_shape_ == (64,)


# --- a target at each step, and rows of other lengths -----------------------------------------------------------------
STEPS = RNG.normal(size=(30, 6, 2))
SIGNS, SUMS = (STEPS[..., 0] > 0).astype(int), STEPS.sum(2).cumsum(1)
CAUSAL = [
    RNN(3, output="each"),
    LSTM(3, output="each"),
    LRU(2, 2, output="each"),
    Transformer(4, 2, 1, causal=True, output="each"),
]


def fitted(kind, network, y, likelihood=None, **given):
    chosen = {} if likelihood is None else {"likelihood": likelihood}
    return kind(network=network, inference=MAP(epochs=2), random_state=0, **chosen).fit(STEPS, y, **given)


@pytest.mark.parametrize("network", CAUSAL, ids=lambda network: type(network).__name__)
def test_a_causal_network_answers_a_prefix_as_the_whole_rows(network):
    classifier, regressor = fitted(Classifier, network, SIGNS), fitted(Regressor, network, SUMS)
    chance, mean = classifier.predict_proba(STEPS), regressor.predict(STEPS)
    of_steps = regressor.predict_dist(STEPS).log_prob(torch.from_numpy(SUMS)).numpy()
    named = np.log(np.take_along_axis(chance, SIGNS[..., None], -1)[..., 0])
    for length in (1, 3):
        some = STEPS[:, :length]
        np.testing.assert_allclose(classifier.predict_proba(some), chance[:, :length], atol=1e-5)
        np.testing.assert_allclose(regressor.predict(some), mean[:, :length], atol=1e-5)
        assert classifier.predict_dist(some).batch_shape == regressor.predict_dist(some).batch_shape == (30, length)
        for model, y, wanted in ((classifier, SIGNS, named), (regressor, SUMS, of_steps)):
            given = model.log_prob(some, y[:, :length])
            np.testing.assert_allclose(given, wanted[:, :length].sum(1), rtol=1e-4, atol=1e-4)
        right = (classifier.predict(STEPS) == SIGNS)[:, :length]
        assert classifier.score(some, SIGNS[:, :length]) == pytest.approx(right.mean())
        np.testing.assert_array_equal(regressor.predict_interval(some)[0].shape, (30, length))
    wanted = np.mean([r2_score(SUMS[:, step], mean[:, step]) for step in range(3)])
    assert regressor.score(STEPS[:, :3], SUMS[:, :3]) == pytest.approx(wanted, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("network", CAUSAL, ids=lambda network: type(network).__name__)
def test_a_list_of_rows_of_several_lengths_is_answered_as_a_list(network, tmp_path):
    lengths = [6, 2, 4]
    X, of_signs, of_sums = ([part[row, :length] for row, length in enumerate(lengths)] for part in (STEPS, SIGNS, SUMS))
    for model, y in ((fitted(Classifier, network, SIGNS), of_signs), (fitted(Regressor, network, SUMS), of_sums)):
        model.save(tmp_path / "model.likely")
        model = likely.load(tmp_path / "model.likely")
        whole = model.predict(STEPS[:3])
        for answer, row, length in zip(model.predict(X), whole, lengths, strict=True):
            np.testing.assert_allclose(answer, row[:length], atol=1e-5)
        each = [model.log_prob(x[None], target[None])[0] for x, target in zip(X, y, strict=True)]
        np.testing.assert_allclose(model.log_prob(X, y), each, rtol=1e-4, atol=1e-4)
        assert model.predict_dist(X).batch_shape == (12,)
        assert [draws.shape for draws in model.sample(X, 5)] == [(5, length) for length in lengths]
    flat = np.concatenate(of_sums)
    assert model.score(X, of_sums) == pytest.approx(r2_score(flat, np.concatenate(model.predict(X))), abs=1e-5)


def test_rows_may_be_longer_than_in_the_fit():
    model = fitted(Classifier, LSTM(3, output="each"), SIGNS)
    twice = np.concatenate([STEPS, STEPS[:, ::-1]], 1)
    np.testing.assert_allclose(model.predict_proba(twice)[:, :6], model.predict_proba(STEPS), atol=1e-5)
    assert model.log_prob(twice, np.concatenate([SIGNS, SIGNS[:, ::-1]], 1)).shape == (30,)
    learned = fitted(Classifier, Transformer(4, 2, 1, output="each"), SIGNS)
    with pytest.raises(DataError, match=r"sequence of 12 steps, but positions were learned for 6; fit with longest=12"):
        learned.predict(twice)


def test_coupled_labels_of_shorter_rows_are_a_distribution():
    model = fitted(Classifier, LSTM(3, output="each"), SIGNS, Chain())
    every = np.array(list(itertools.product([0, 1], repeat=3)))
    rows = np.repeat(STEPS[:1, :3], len(every), 0)
    total = np.exp(model.log_prob(rows, every)).sum()
    assert total == pytest.approx(1.0, rel=1e-4)
    best = every[model.log_prob(rows, every).argmax()]
    np.testing.assert_array_equal(model.predict(rows[:1])[0], best)
    listed = model.predict([STEPS[0, :3], STEPS[1]])
    np.testing.assert_array_equal(listed[0], best)
    np.testing.assert_array_equal(listed[1], model.predict(STEPS[1:2])[0])


def test_weights_and_exposures_follow_the_length():
    counts = np.random.default_rng(1).poisson(2.0, (30, 6))
    model = fitted(Regressor, LSTM(3, output="each"), counts, Poisson(), exposure=np.ones((30, 6)))
    per_step = np.arange(1.0, 4.0) * np.ones((30, 3))
    once = model.predict(STEPS[:, :3], exposure=1.0)
    np.testing.assert_allclose(model.predict(STEPS[:, :3], exposure=per_step), once * per_step, rtol=1e-5)
    listed = model.predict([STEPS[0, :3], STEPS[1]], exposure=[2.0, 3.0])
    np.testing.assert_allclose(listed[0], 2 * once[0], rtol=1e-5)
    np.testing.assert_allclose(listed[1][:3], 3 * once[1], rtol=1e-5)
    tagger, weight = fitted(Classifier, LSTM(3, output="each"), SIGNS), np.arange(90.0).reshape(30, 3)
    right = tagger.predict(STEPS[:, :3]) == SIGNS[:, :3]
    given = tagger.score(STEPS[:, :3], SIGNS[:, :3], sample_weight=weight)
    assert given == pytest.approx(np.average(right, weights=weight))


def test_rows_of_other_lengths_are_refused_naming_networks_for_them():
    model = fitted(Classifier, LSTM(3, output="each"), SIGNS)
    with pytest.raises(
        DataError, match=r"y has targets at \(6,\) positions, but X has rows of \(3,\); they must agree"
    ):
        model.score(STEPS[:, :3], SIGNS)
    with pytest.raises(DataError, match="y has another form than in fit, where it had a target for each position"):
        model.score([STEPS[0], STEPS[1, :3]], [0, 1])
    own = fitted(Regressor, nn.Linear(2, 1), SUMS)
    with pytest.raises(
        DataError, match=r"X has sequences of 3 steps; the model was fitted on 6, and .* length alone; RNN"
    ):
        own.predict(STEPS[:, :3])
    with pytest.raises(DataError, match=r"fitted on rows of one shape\. RNN, GRU, LSTM, .* sequences of any length"):
        own.predict([STEPS[0], STEPS[1, :3]])
    series = np.moveaxis(STEPS, 1, 2)
    flat = Classifier(network=ConvNet((2,)), inference=MAP(epochs=1), random_state=0).fit(series, SIGNS[:, 0])
    with pytest.raises(DataError, match=r"and ConvNet.* answers for that size alone; ConvNet\(pool='mean'\), ResNet"):
        flat.predict(series[:, :, :4])


def test_series_of_other_lengths_have_as_many_targets():
    series = np.moveaxis(np.tile(STEPS, (1, 3, 1)), 1, 2)
    y = (series[:, 0] > 0).astype(int)
    model = Classifier(network=UNet((2,)), inference=MAP(epochs=1), random_state=0).fit(series, y)
    chance = model.predict_proba(series[:, :, :8])
    named = np.log(np.take_along_axis(chance, y[:, :8, None], -1)[..., 0]).sum(1)
    np.testing.assert_allclose(model.log_prob(series[:, :, :8], y[:, :8]), named, rtol=1e-4)
    with pytest.raises(
        DataError, match=r"y has targets at \(18,\) positions, but X has rows of \(8,\); they must agree"
    ):
        model.score(series[:, :, :8], y)
