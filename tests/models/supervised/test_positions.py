"""y is (n, *positions): a row, a token, a pixel and an output are the same to an estimator."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import likely
from likely import Classifier, Regressor
from likely.core.errors import DataError
from likely.inference import MAP, Ensemble
from likely.likelihoods import Gamma, MultivariateNormal, Normal, Poisson, StudentT
from likely.networks import MLP
from likely.optim import Adam

QUICK = MAP(Adam(0.03), epochs=30, batch_size=None)
ROWS, TOKENS, COLUMNS = 60, 4, 3


class Pixels(nn.Module):
    """A convolution that gives `size` numbers for each pixel, in the last axis."""

    def __init__(self, size):
        super().__init__()
        self.convolution = nn.Conv2d(2, size, kernel_size=3, padding=1)

    def forward(self, x):
        return self.convolution(x).movedim(1, -1)


@pytest.fixture
def tokens():
    """X (n, t, d), and a number and a label for each token."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, TOKENS, COLUMNS))
    eta = X @ [1.0, -2.0, 0.5] + 0.3
    return X, eta + 0.5 * rng.normal(size=eta.shape), (eta + rng.logistic(size=eta.shape) > 0).astype(int)


@pytest.fixture
def images():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(24, 2, 5, 6))
    return X, (X[:, 0] > 0).astype(int) + (X[:, 1] > 0)


def flat(X):
    return X.reshape(-1, X.shape[-1])


# --- one model for all tokens -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("likelihood", [Normal(), Normal(scale="input"), StudentT(), Poisson(), Gamma()], ids=repr)
def test_a_linear_model_of_tokens_is_that_of_their_rows(tokens, likelihood):
    X, y, _ = tokens
    y = {"Poisson": np.round(np.exp(y / 4)), "Gamma": np.exp(y)}.get(type(likelihood).__name__, y)
    model, rows = Regressor(likelihood).fit(X, y), Regressor(likelihood).fit(flat(X), y.ravel())
    assert model.positions_ == (TOKENS,)
    np.testing.assert_allclose(model.predict(X), rows.predict(flat(X)).reshape(y.shape), rtol=1e-6)
    by_row = rows.log_prob(flat(X), y.ravel()).reshape(y.shape).sum(1)
    np.testing.assert_allclose(model.log_prob(X, y), by_row, rtol=1e-6)


def test_a_linear_classifier_of_tokens_is_that_of_their_rows(tokens):
    X, y, labels = tokens
    for target in (labels, np.digitize(y, [-1.0, 1.0])):
        model, rows = Classifier().fit(X, target), Classifier().fit(flat(X), target.ravel())
        chance = rows.predict_proba(flat(X)).reshape(*target.shape, -1)
        np.testing.assert_allclose(model.predict_proba(X), chance, rtol=1e-7)
        assert model.score(X, target) == rows.score(flat(X), target.ravel())


def test_a_network_of_tokens_answers_each_alike(tokens):
    """The same token gives the same answer at any position, whatever stands beside it."""
    X, y, labels = tokens
    for model, target in ((Regressor(), y), (Classifier(), labels)):
        model.set_params(network=MLP((8,)), inference=QUICK, random_state=0).fit(X, target)
        answer = model.predict(X)
        assert answer.shape == target.shape
        np.testing.assert_allclose(model.predict(X[:, ::-1]), answer[:, ::-1], rtol=1e-5)
        assert model.score(X, target) > 0.5


# --- shapes of every answer -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("inference", [QUICK, Ensemble(2, by=QUICK)], ids=["map", "ensemble"])
@pytest.mark.parametrize("kind", ["tokens", "outputs"])
def test_every_answer_has_the_shape_of_the_targets(tokens, kind, inference):
    X, y, labels = tokens
    X = X if kind == "tokens" else X[:, 0]
    model = Regressor(network=MLP((8,)), inference=inference, random_state=0).fit(X, y)
    lower, upper = model.predict_interval(X)
    assert model.predict(X).shape == lower.shape == upper.shape == y.shape
    assert model.sample(X, 3).shape == (3, *y.shape)
    assert model.predict_dist(X).batch_shape == y.shape
    assert model.log_prob(X, y).shape == (ROWS,)
    model = Classifier(network=MLP((8,)), inference=inference, random_state=0).fit(X, labels)
    assert model.predict(X).shape == labels.shape
    assert model.predict_proba(X).shape == model.predict_log_proba(X).shape == (*labels.shape, 2)
    assert model.sample(X, 3).shape == (3, *labels.shape)
    assert model.log_prob(X, labels).shape == (ROWS,)


@pytest.mark.parametrize("inference", [QUICK, Ensemble(2, by=QUICK)], ids=["map", "ensemble"])
def test_pixels_are_classified_by_a_module_of_ones_own(images, inference):
    X, labels = images
    model = Classifier(network=Pixels(3), inference=inference, random_state=0).fit(X, labels)
    assert model.predict(X).shape == labels.shape
    assert model.predict_proba(X).shape == (*labels.shape, 3)
    assert model.score(X, labels) > 0.5
    two = Classifier(network=Pixels(1), inference=inference, random_state=0).fit(X, labels > 0)
    assert two.predict_proba(X).shape == (*labels.shape, 2)
    numbers = Regressor(network=Pixels(1), inference=inference, random_state=0).fit(X, X[:, 0])
    assert numbers.predict(X).shape == X[:, 0].shape
    assert numbers.score(X, X[:, 0]) > 0.5


def test_log_probabilities_add_up_over_positions(images):
    X, labels = images
    model = Classifier(network=Pixels(3), inference=QUICK, random_state=0).fit(X, labels)
    log_prob = np.take_along_axis(model.predict_log_proba(X), labels[..., None], -1)[..., 0]
    np.testing.assert_allclose(model.log_prob(X, labels), log_prob.sum((1, 2)), rtol=1e-5)


# --- a model of its own for each output -------------------------------------------------------------------------------
def test_several_outputs_are_as_many_regressions(tokens):
    X, y, labels = tokens
    X = X[:, 0]
    model = Regressor().fit(X, y)
    alone = [Regressor().fit(X, column) for column in y.T]
    np.testing.assert_allclose(model.predict(X), np.stack([one.predict(X) for one in alone], 1), rtol=1e-10)
    scores = sum(one.log_prob(X, column) for one, column in zip(alone, y.T, strict=True))
    np.testing.assert_allclose(model.log_prob(X, y), scores, rtol=1e-9)
    model = Classifier().fit(X, labels)
    alone = [Classifier().fit(X, column) for column in labels.T]
    chance = np.stack([one.predict_proba(X) for one in alone], 1)
    np.testing.assert_allclose(model.predict_proba(X), chance, rtol=1e-6)


def test_a_constant_output_does_not_disturb_the_others():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 2))
    y = np.column_stack([X[:, 0], np.full(200, 4.0), 1e5 * X[:, 1], np.zeros(200)])
    model = Regressor(network=MLP((16,)), inference=MAP(Adam(0.02), epochs=150, batch_size=None), random_state=0)
    predicted = model.fit(X, y).predict(X)
    np.testing.assert_allclose(predicted[:, 1], 4.0, rtol=1e-6)
    np.testing.assert_allclose(predicted[:, 3], 0.0, atol=1e-6)
    for column in (0, 2):
        assert np.corrcoef(predicted[:, column], y[:, column])[0, 1] > 0.99


def test_rows_of_tokens_with_one_target_are_flattened(tokens):
    X, y, labels = tokens
    rows = X.reshape(ROWS, -1)
    np.testing.assert_allclose(Regressor().fit(X, y[:, 0]).predict(X), Regressor().fit(rows, y[:, 0]).predict(rows))
    for model, target in ((Regressor(), y[:, 0]), (Classifier(), labels[:, 0])):
        model.set_params(network=MLP((8,)), inference=QUICK, random_state=0)
        answer = model.fit(X, target).predict(X)
        assert answer.shape == (ROWS,)
        flat = model.fit(rows, target).predict(rows)
        np.testing.assert_allclose(answer, flat, rtol=0, atol=1e-3 * np.std(target))  # 30 steps in float32


def test_vectors_at_positions(tokens):
    X, y, _ = tokens
    pairs = np.stack([y, 2 * y + np.random.default_rng(4).normal(size=y.shape)], -1)
    model = Regressor(MultivariateNormal()).fit(X, pairs)
    assert model.positions_ == (TOKENS,)
    rows = Regressor(MultivariateNormal()).fit(flat(X), pairs.reshape(-1, 2))
    np.testing.assert_allclose(model.predict(X), rows.predict(flat(X)).reshape(pairs.shape), rtol=1e-6)


# --- what does not count ----------------------------------------------------------------------------------------------
@pytest.fixture
def seen():
    return np.random.default_rng(3).random((ROWS, TOKENS)) < 0.7


def test_missing_numbers_at_positions_are_left_out(tokens, seen):
    X, y, _ = tokens
    gaps = np.where(seen, y, np.nan)
    model, alone = Regressor().fit(X, gaps), Regressor().fit(X[seen], y[seen])
    np.testing.assert_allclose(model.predict(X), alone.predict(flat(X)).reshape(y.shape), rtol=1e-9)
    log_prob = np.zeros_like(y)
    log_prob[seen] = alone.log_prob(X[seen], y[seen])
    np.testing.assert_allclose(model.log_prob(X, gaps), log_prob.sum(1), rtol=1e-9)


@pytest.mark.parametrize("missing", [-1, np.nan])
def test_missing_labels_at_positions_are_left_out(tokens, seen, missing):
    X, _, labels = tokens
    gaps = np.where(seen, labels, missing)
    model, alone = Classifier(missing_label=-1).fit(X, gaps), Classifier().fit(X[seen], labels[seen])
    chance = alone.predict_proba(flat(X)).reshape(*labels.shape, 2)
    np.testing.assert_allclose(model.predict_proba(X), chance, rtol=1e-8)
    assert model.score(X, gaps) == alone.score(X[seen], labels[seen])
    assert (model.log_prob(X, np.full(labels.shape, missing)) == 0).all()


def test_missing_targets_do_not_move_a_network(tokens, seen):
    """What stands where a target is missing has no gradient: the fit is the same to the last bit."""
    X, y, labels = tokens
    model = Regressor(network=MLP((8,)), inference=QUICK, random_state=0, standardise=False)
    gaps = np.where(seen, y, np.nan)
    first = model.fit(X, gaps).predict(X)
    moved = X.copy()
    moved[~seen] = 0.0
    second = model.fit(moved, gaps).predict(X)
    np.testing.assert_allclose(first, second, rtol=1e-4, atol=1e-5)
    chance = Classifier(network=MLP((8,)), inference=QUICK, random_state=0, missing_label=-1)
    chance.fit(X, np.where(seen, labels, -1))
    assert np.isfinite(chance.predict_proba(X)).all()


def test_which_labels_are_missing(tokens, seen):
    X, _, labels = tokens
    gaps = np.where(seen, labels, -1)
    assert Classifier().fit(X, 2 * labels - 1).classes_.tolist() == [-1, 1]
    assert Classifier().fit(X, gaps).classes_.tolist() == [-1, 0, 1]
    assert Classifier(missing_label=9).fit(X, np.where(seen, labels, 9)).classes_.tolist() == [0, 1]
    fitted = Classifier(missing_label=-1).fit(X, gaps)
    assert fitted.classes_.tolist() == [0, 1]
    one = fitted.log_prob(X[:1], [[-1, 1, -1, 1]])  # one class beside the missing ones
    np.testing.assert_allclose(one, fitted.predict_log_proba(X[:1])[0, [1, 3], 1].sum())


def test_weights_are_for_rows_with_all_their_positions(tokens, seen):
    X, y, labels = tokens
    weight = np.arange(ROWS) % 3
    times = np.repeat(np.arange(ROWS), weight)
    np.testing.assert_allclose(
        Regressor().fit(X, y, weight).predict(X), Regressor().fit(X[times], y[times]).predict(X), rtol=1e-9
    )
    gaps = np.where(seen, labels, -1)
    np.testing.assert_allclose(
        Classifier(missing_label=-1).fit(X, gaps, weight).predict_proba(X),
        Classifier(missing_label=-1).fit(X[times], gaps[times]).predict_proba(X),
        rtol=1e-7,
    )


def test_an_output_without_targets_is_refused_if_it_has_own_weights(tokens):
    X, y, _ = tokens
    y = y.copy()
    y[:, 2] = np.nan
    with pytest.raises(DataError, match="y has no target at position 2: all are missing or without weight"):
        Regressor().fit(X[:, 0], y)
    assert np.isfinite(Regressor().fit(X, y).predict(X)).all()  # tokens share their weights: the others teach it


def test_all_targets_missing_or_without_weight_are_refused(tokens):
    X, y, labels = tokens
    with pytest.raises(DataError, match="y has no target at all: every one is missing"):
        Regressor().fit(X, np.full_like(y, np.nan))
    with pytest.raises(DataError, match="y has no label at all; a classifier needs at least two classes"):
        Classifier().fit(X, np.full(labels.shape, np.nan))
    gaps = y.copy()
    gaps[: ROWS // 2] = np.nan
    with pytest.raises(DataError, match="No target has weight: rows with sample_weight above 0 have no label"):
        Regressor().fit(X, gaps, np.arange(ROWS) < ROWS // 2)


# --- wrong shapes and files -------------------------------------------------------------------------------------------
def test_targets_of_another_shape_are_refused(tokens):
    X, y, labels = tokens
    with pytest.raises(DataError, match=r"y has shape \(60, 2\); the model was fitted on targets \(n, 4\)"):
        Regressor().fit(X, y).log_prob(X, y[:, :2])
    with pytest.raises(DataError, match=r"y has shape \(60,\); the model was fitted on labels \(n, 4\)"):
        Classifier().fit(X, labels).log_prob(X, labels[:, 0])
    with pytest.raises(DataError, match=r"y has shape \(60, 4\); the model was fitted on targets \(n,\)"):
        Regressor().fit(X, y[:, 0]).log_prob(X, y)
    with pytest.raises(DataError, match=r"X has rows of shape \(4, 2\); the model was fitted on \(4, 3\)"):
        Regressor().fit(X, y).predict(X[..., :2])


def test_saved_and_loaded_the_answers_are_the_same(tokens, images, tmp_path):
    X, y, labels = tokens
    pixels, colours = images
    path = tmp_path / "model.likely"
    network = {"network": MLP((8,)), "inference": Ensemble(2, by=QUICK), "random_state": 0}
    for model, rows, target in (
        (Regressor(), X, y),
        (Classifier(), X, labels),
        (Regressor(), X[:, 0], y),
        (Regressor(**network), X[:, 0], y),
        (Classifier(**network), X, labels),
        (Classifier(network=Pixels(3), inference=QUICK), pixels, colours),
    ):
        model.fit(rows, target).save(path)
        code = {"network": Pixels(3)} if isinstance(model.network, nn.Module) else {}
        loaded = likely.load(path, **code)
        assert loaded.positions_ == target.shape[1:]
        np.testing.assert_array_equal(loaded.predict(rows), model.predict(rows))
        np.testing.assert_array_equal(loaded.log_prob(rows, target), model.log_prob(rows, target))


def test_tensors_of_any_shape_are_rows(tokens):
    X, y, _ = tokens
    model = Regressor().fit(torch.tensor(X), torch.tensor(y))
    expected = Regressor().fit(X, y).predict(X)
    np.testing.assert_allclose(model.predict(torch.tensor(X)), expected, rtol=0, atol=1e-9 * np.std(y))
