"""The training engine: rows, steps, noise, early stopping, repeatability."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from scipy.special import expit

from likely import Classifier, Regressor
from likely.core.errors import DataError, TrainingError
from likely.inference import MAP, Noise
from likely.likelihoods import Normal
from likely.networks import MLP
from likely.optim import LBFGS, SGD, Adam, Cosine, Exponential, StepDecay


def flat_parameters(model):
    return torch.cat([value.flatten() for value in model.posterior_.parameters.values()])


@pytest.fixture
def X(rng):
    return rng.normal(size=(50, 2))


@pytest.fixture
def y(rng, X):
    return np.sin(X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=50)


def fitted(X, y, training, network="linear", likelihood="normal", seed=0):
    return Regressor(likelihood, network, inference=training, random_state=seed).fit(X, y)


# --- rows and steps -------------------------------------------------------------------------------------------------
class Spy:
    """Notes the rows (by the number in their first column) of each batch."""

    def __init__(self):
        self.batches = []

    def rows(self, first=0, last=None):
        return list(itertools.chain.from_iterable(self.batches[first:last]))

    def __call__(self, x):
        self.batches.append([round(v) for v in x[:, 0].tolist()])
        return x


def numbered(rows):
    return np.column_stack([np.arange(rows), np.zeros(rows)]), np.linspace(0, 1, rows)


def test_an_epoch_visits_each_row_exactly_once_in_a_new_order():
    spy = Spy()
    fitted(*numbered(50), MAP(SGD(1e-6), epochs=3, batch_size=8, augment=spy))
    assert [len(batch) for batch in spy.batches] == [8, 8, 8, 8, 8, 8, 2] * 3
    epochs = [spy.rows(7 * k, 7 * k + 7) for k in range(3)]
    assert all(sorted(order) == list(range(50)) for order in epochs)
    assert epochs[0] != epochs[1] != epochs[2]


def test_rows_held_out_are_never_trained_on():
    spy = Spy()
    fitted(*numbered(50), MAP(SGD(1e-6), epochs=3, batch_size=8, validation=0.2, augment=spy))
    seen = set(spy.rows())
    assert len(seen) == 40


def test_a_whole_epoch_of_unbiased_steps_is_a_full_step_for_a_tiny_rate(X, y):
    """To first order in the rate, the batches of an epoch add up to its number of full-batch steps."""
    split = flat_parameters(fitted(X, y, MAP(SGD(1e-4), epochs=1, batch_size=10), likelihood=Normal(scale=1.0)))
    whole = flat_parameters(fitted(X, y, MAP(SGD(5e-4), epochs=1, batch_size=None), likelihood=Normal(scale=1.0)))
    start = torch.tensor([0.0, 0.0, y.mean()])
    torch.testing.assert_close(split - start, whole - start, rtol=0.02, atol=1e-6)


def test_augmentation_changes_what_is_trained_on(X, y):
    halved = fitted(X, y, MAP(SGD(0.2), epochs=300, batch_size=None, augment=lambda x: x / 2), likelihood=Normal(1.0))
    by_hand = fitted(X / 2, y, MAP(SGD(0.2), epochs=300, batch_size=None), likelihood=Normal(1.0))
    torch.testing.assert_close(flat_parameters(halved), flat_parameters(by_hand), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("schedule", [Cosine(), Exponential(), StepDecay(every=3)], ids=repr)
@pytest.mark.parametrize("batch_size", [None, 10])
def test_the_schedule_sets_the_rate_of_every_step(schedule, batch_size, X, y):
    """What an epoch reports is the rate of its last step."""
    model = fitted(X, y, MAP(SGD(0.1), epochs=6, batch_size=batch_size, schedule=schedule))
    per_epoch = 1 if batch_size is None else 5
    last = [0.1 * schedule.factor(per_epoch * (k + 1) - 1, 6 * per_epoch) for k in range(6)]
    np.testing.assert_allclose(model.posterior_.info["history"]["lr"], last, rtol=1e-6)


def test_a_schedule_is_a_sequence_of_plain_steps(X, y):
    """θ after two scheduled steps on a quadratic, written out."""
    schedule, rate = Exponential(2.0), 0.1
    model = fitted(X, y, MAP(SGD(rate), epochs=2, batch_size=None, schedule=schedule), likelihood=Normal(1.0))
    design = np.column_stack([X, np.ones(50)])
    theta = np.array([0.0, 0.0, y.mean()])
    for step in range(2):
        theta = theta - rate * schedule.factor(step, 2) * design.T @ (design @ theta - y) / 50
    np.testing.assert_allclose(flat_parameters(model), theta, atol=1e-6)


def test_clipping_bounds_the_step_and_keeps_its_direction(X, y):
    start = torch.tensor([0.0, 0.0, y.mean()])
    plain = flat_parameters(fitted(X, y, MAP(SGD(1.0), epochs=1, batch_size=None), likelihood=Normal(1.0))) - start
    clip = MAP(SGD(1.0), epochs=1, batch_size=None, clip_norm=0.01)
    clipped = flat_parameters(fitted(X, y, clip, likelihood=Normal(1.0))) - start
    assert plain.norm() > 0.1
    assert clipped.norm() == pytest.approx(0.01, rel=1e-4)
    torch.testing.assert_close(clipped / clipped.norm(), plain / plain.norm(), rtol=1e-4, atol=1e-5)
    wide = MAP(SGD(1.0), epochs=1, batch_size=None, clip_norm=100.0)
    torch.testing.assert_close(flat_parameters(fitted(X, y, wide, likelihood=Normal(1.0))) - start, plain)


# --- noise ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("noise", [Noise(inputs=0.3), Noise(weights=0.3), Noise(gradients=0.3)], ids=repr)
def test_noise_changes_training_and_is_repeatable(noise, X, y):
    plain = fitted(X, y, MAP(SGD(0.1), epochs=5), "mlp([4])")
    noisy, again = (fitted(X, y, MAP(SGD(0.1), epochs=5, noise=noise), "mlp([4])") for _ in range(2))
    assert torch.equal(flat_parameters(noisy), flat_parameters(again))
    assert not torch.allclose(flat_parameters(noisy), flat_parameters(plain))


def test_noise_on_weights_is_taken_away_again(X, y):
    """With steps too small to show in float32, weights end where they began."""
    still = fitted(X, y, MAP(SGD(1e-30), epochs=5), "mlp([4])")
    nudged = fitted(X, y, MAP(SGD(1e-30), epochs=5, noise=Noise(weights=1.0)), "mlp([4])")
    torch.testing.assert_close(flat_parameters(still), flat_parameters(nudged), rtol=0, atol=1e-20)


def test_noise_on_inputs_is_a_penalty(rng):
    """Noise of variance s² on the inputs of a linear model is ridge with penalty n·s²: θ = (XᵀX + n s² I)⁻¹Xᵀy.

    Averaged over the last half of training by a falling step; the steps' noise leaves well under 0.05.
    """
    X = rng.normal(size=(400, 2))
    y = X @ [1.0, -1.0]
    training = MAP(SGD(0.1), epochs=150, batch_size=100, noise=0.7, schedule=Cosine())
    model = Regressor(Normal(1.0), inference=training, random_state=0).fit(X, y)
    centred = X - X.mean(0)
    ridge = np.linalg.solve(centred.T @ centred + 400 * 0.7**2 * np.eye(2), centred.T @ (y - y.mean()))
    np.testing.assert_allclose(model.posterior_.parameters["network.weight"][0, 0], ridge, atol=0.05)


# --- validation -----------------------------------------------------------------------------------------------------
def overfitting():
    rng = np.random.default_rng(5)
    X, new = rng.normal(size=(30, 2)), rng.normal(size=(200, 2))
    return X, rng.binomial(1, expit(X[:, 0])), new, rng.binomial(1, expit(new[:, 0]))


def test_the_best_weights_are_restored():
    X, y, new, truth = overfitting()
    training = MAP(Adam(0.05), epochs=80, batch_size=None, validation=(new, truth))
    model = Classifier(network=MLP((16,)), inference=training, random_state=0).fit(X, y)
    scores = model.posterior_.info["history"]["validation"]
    assert len(scores) == 80
    assert np.argmin(scores) < 70  # it does overfit, so that there is something to restore
    assert -model.log_prob(new, truth).mean() == pytest.approx(min(scores), rel=1e-5)


@pytest.mark.parametrize("patience", [1, 4])
def test_patience_stops_that_many_epochs_after_the_best(patience):
    X, y, new, truth = overfitting()
    training = MAP(Adam(0.05), epochs=200, batch_size=None, validation=(new, truth), patience=patience)
    model = Classifier(network=MLP((16,)), inference=training, random_state=0).fit(X, y)
    scores = model.posterior_.info["history"]["validation"]
    assert len(scores) == np.argmin(scores) + 1 + patience < 200
    assert -model.log_prob(new, truth).mean() == pytest.approx(min(scores), rel=1e-5)


@pytest.mark.parametrize("validation", [None, 0.3])
def test_patience_alone_holds_a_tenth_of_the_rows_out(validation):
    spy, (X, y) = Spy(), numbered(50)
    model = fitted(X, y, MAP(SGD(1e-9), epochs=50, patience=2, validation=validation, augment=spy))
    assert len(set(spy.rows())) == (45 if validation is None else 35)
    assert len(model.posterior_.info["history"]["validation"]) <= 50


def test_validation_rows_can_have_weights(X, y):
    new, truth = X[:20] + 0.1, y[:20]
    weight = np.repeat([0.0, 1.0], 10)
    weighted = fitted(X, y, MAP(SGD(0.1), epochs=5, validation=(new, truth, weight)))
    removed = fitted(X, y, MAP(SGD(0.1), epochs=5, validation=(new[10:], truth[10:])))
    ours, theirs = (model.posterior_.info["history"]["validation"] for model in (weighted, removed))
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_validation_data_are_checked_like_the_rest(X, y):
    with pytest.raises(DataError, match="X has 3 features"):
        fitted(X, y, MAP(epochs=2, validation=(np.zeros((5, 3)), np.zeros(5))))
    with pytest.raises(DataError, match=r"validation must be a fraction, \(X, y\), or \(X, y, sample_weight\)"):
        fitted(X, y, MAP(epochs=2, validation=(X,)))


def test_validation_is_scored_without_dropout(X, y):
    training = MAP(SGD(1e-30), epochs=4, validation=(X, y))
    scores = fitted(X, y, training, MLP((16,), dropout=0.5)).posterior_.info["history"]["validation"]
    np.testing.assert_array_equal(scores, scores[0])


# --- callbacks and history ------------------------------------------------------------------------------------------
def test_callbacks_see_every_epoch_and_can_stop(X, y):
    seen = []

    def watch(event):
        seen.append(event)
        return event.epoch == 3

    model = fitted(X, y, MAP(SGD(0.1), epochs=10, batch_size=10, validation=0.2, callbacks=(watch,)))
    history = model.posterior_.info["history"]
    assert [event.epoch for event in seen] == [1, 2, 3]
    assert [event.step for event in seen] == [4, 8, 12]
    assert [event.loss for event in seen] == history["loss"]
    assert [event.validation for event in seen] == history["validation"]
    assert [event.lr for event in seen] == history["lr"]


def test_a_callback_that_returns_something_else_does_not_stop(X, y):
    model = fitted(X, y, MAP(SGD(0.1), epochs=4, callbacks=(lambda event: event.epoch,)))
    assert len(model.posterior_.info["history"]["loss"]) == 4


def test_history_without_validation_has_losses_and_rates(X, y):
    history = fitted(X, y, MAP(SGD(0.1), epochs=4, batch_size=None)).posterior_.info["history"]
    assert set(history) == {"loss", "lr"}
    assert history["loss"] == sorted(history["loss"], reverse=True)


def test_the_first_loss_is_the_mean_negative_log_probability_at_the_start(X, y):
    history = fitted(X, y, MAP(SGD(0.1), epochs=1, batch_size=None)).posterior_.info["history"]
    spread = y.std()
    assert history["loss"][0] == pytest.approx(0.5 + math.log(spread * math.sqrt(2 * math.pi)), rel=1e-5)


# --- repeatability --------------------------------------------------------------------------------------------------
def test_the_same_seed_gives_the_same_bits_and_another_does_not(X, y):
    training = MAP(Adam(0.01), epochs=4, batch_size=10)
    network = MLP((8,), dropout=0.3, norm="batch")
    first, again, other = (fitted(X, y, training, network, seed=seed) for seed in (0, 0, 1))
    assert torch.equal(flat_parameters(first), flat_parameters(again))
    assert not torch.equal(flat_parameters(first), flat_parameters(other))


def test_the_global_random_state_is_left_alone_and_does_not_matter(X, y):
    training, network = MAP(Adam(0.01), epochs=3, batch_size=10, noise=0.1), MLP((8,), dropout=0.3)
    with torch.random.fork_rng():
        torch.manual_seed(5)
        before = torch.get_rng_state()
        first = fitted(X, y, training, network)
        assert torch.equal(torch.get_rng_state(), before)
        torch.manual_seed(6)
        assert torch.equal(flat_parameters(fitted(X, y, training, network)), flat_parameters(first))


# --- trouble --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("optimizer", [SGD(1e30), SGD(1e30, momentum=0.9)], ids=repr)
def test_a_loss_that_is_not_finite_is_an_error_with_a_remedy(optimizer, X, y):
    message = r"The loss is (nan|inf) at step \d+ \(epoch \d+\) with learning rate 1e\+30. Try a smaller learning rate"
    with pytest.raises(TrainingError, match=message):
        fitted(X, y, MAP(optimizer, epochs=20, batch_size=10), MLP((4,)))


def test_quasi_newton_on_hard_data_ends_finite(rng):
    X = rng.normal(size=(40, 2)) * [1e4, 1e-4]
    model = fitted(X, X[:, 0], MAP(LBFGS(), epochs=5, batch_size=None), MLP((4,), "tanh"))
    assert np.isfinite(model.predict(X)).all()


def test_without_a_seed_two_fits_differ(X, y):
    training = MAP(SGD(0.1), epochs=1)
    first, second = (fitted(X, y, training, MLP((8,)), seed=None) for _ in range(2))
    assert not torch.equal(flat_parameters(first), flat_parameters(second))
