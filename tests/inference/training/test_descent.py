"""A step of MAP on a linear model, written out: the loss, its gradient, proximal shrinking, and the split of rows."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from likely import Regressor, priors
from likely.core.errors import DataError, TrainingError
from likely.inference import MAP
from likely.inference.training.descent import Descent
from likely.likelihoods import Normal
from likely.optim import SGD

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(20, 2)), RNG.normal(size=20)
SIGMA, RATE = 0.7, 0.1


@pytest.fixture
def descent(problem_of):
    def descent(prior=priors.Flat(), **options):  # noqa: B008 (a spec never changes)
        problem = problem_of(Regressor(Normal(SIGMA), prior=prior, random_state=0), X, Y)
        return Descent(problem, MAP(SGD(RATE), **{"epochs": 3, "batch_size": None, **options}), [0])

    return descent


def theta(run):
    return torch.cat([value.detach().flatten() for value in run.program.parameters.values()]).numpy().copy()


def gradient(at, rows=slice(None)):
    """Of the mean −log p(y | x) of the rows."""
    wide = np.column_stack([X, np.ones(20)])[rows]
    return wide.T @ (wide @ at - Y[rows]) / SIGMA**2 / len(wide)


def test_a_step_is_minus_the_rate_times_the_mean_gradient(descent):
    run = descent()
    before = theta(run)
    run.advance(0)
    np.testing.assert_allclose(theta(run), before - RATE * gradient(before), rtol=1e-9)
    gap = Y - np.column_stack([X, np.ones(20)]) @ before
    loss = 0.5 * np.mean(gap**2) / SIGMA**2 + math.log(SIGMA * math.sqrt(2 * math.pi))
    assert run.epoch_loss == pytest.approx(loss, rel=1e-9)


def test_a_normal_prior_adds_its_gradient_per_row(descent):
    run = descent(priors.Normal(0.5))
    before = theta(run)
    run.advance(0)
    pull = np.append(before[:2], 0.0) * 4 / 20
    np.testing.assert_allclose(theta(run), before - RATE * (gradient(before) + pull), rtol=1e-9)


def test_a_laplace_prior_shrinks_after_the_step(descent):
    run = descent(priors.Laplace(0.05))
    before = theta(run)
    run.advance(0)
    step = before - RATE * gradient(before)
    shrunk = np.sign(step[:2]) * np.maximum(np.abs(step[:2]) - RATE * 20 / 20, 0.0)
    np.testing.assert_allclose(theta(run), [*shrunk, step[2]], rtol=1e-9, atol=1e-12)


def test_an_epoch_is_reported_with_its_mean_loss(descent):
    run = descent(batch_size=5)
    losses = []
    for step in range(4):
        kept = run.epoch_loss
        run.advance(step)
        losses.append(4 * (run.epoch_loss - kept))
    run.report(4)
    assert run.history["loss"] == [pytest.approx(np.mean(losses))]
    assert run.history["lr"] == [RATE]


def test_rows_to_validate_on_are_apart_from_those_to_train_on(descent):
    run = descent(validation=0.25)
    train, held = set(run.data.rows.tolist()), set(run.validation.rows.tolist())
    assert len(held) == 5
    assert train | held == set(range(20))
    assert not train & held
    with pytest.raises(DataError, match=r"validation=0.99 of 20 rows leaves nothing to train on"):
        descent(validation=0.99)


def test_a_loss_that_is_not_finite_is_an_error_with_its_step(descent):
    run = descent()
    with torch.no_grad():
        run.program.flat.fill_(math.inf)
    with pytest.raises(TrainingError, match=r"at step 1 \(epoch 1\) with learning rate 0\.1\. Try a smaller"):
        run.advance(0)
