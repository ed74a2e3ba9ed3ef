"""Averages of weights are those of the weights that training went through."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from likely import Regressor
from likely.core.errors import SpecError
from likely.inference import EMA, MAP, SWA, Checkpoint, Ensemble
from likely.networks import MLP
from likely.optim import SGD


@pytest.fixture
def X(rng):
    return rng.normal(size=(24, 2))


@pytest.fixture
def y(rng, X):
    return np.sin(X[:, 0]) + 0.1 * rng.normal(size=24)


def flat(model):
    return torch.cat([value.flatten(1) for value in model.posterior_.parameters.values()], 1)


def fitted(X, y, training, network="mlp([4], activation='tanh')"):
    return Regressor(network=network, inference=training, random_state=0).fit(X, y)


def visited(X, y, training, epochs):
    """θ at the end of each epoch of the same training without an average."""
    return torch.stack([flat(fitted(X, y, training(epochs=epoch)))[0] for epoch in range(1, epochs + 1)])


def test_swa_is_the_mean_over_the_last_epochs(X, y):
    training = MAP(SGD(0.1), epochs=8, batch_size=6)
    mean = flat(fitted(X, y, training(average=SWA(0.5))))[0]
    torch.testing.assert_close(mean, visited(X, y, training, 8)[4:].mean(0), rtol=1e-5, atol=1e-6)


def test_ema_weighs_steps_by_powers_of_the_decay(X, y):
    """With all rows in a batch an epoch is a step."""
    training = MAP(SGD(0.1), epochs=6, batch_size=None)
    mean = flat(fitted(X, y, training(average=EMA(0.7))))[0]
    weights = 0.7 ** torch.arange(5, -1, -1.0)
    expected = (weights / weights.sum()) @ visited(X, y, training, 6)
    torch.testing.assert_close(mean, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("average", [EMA(0.9), SWA(0.5)], ids=repr)
def test_members_of_an_ensemble_are_averaged_each_by_itself(average, X, y):
    training = MAP(SGD(0.1), epochs=4, batch_size=6, average=average)
    ensemble = fitted(X, y, Ensemble(3, by=training))
    plain = fitted(X, y, Ensemble(3, by=training(average=None)))
    assert flat(ensemble).shape == flat(plain).shape
    gaps = (flat(ensemble) - flat(plain)).norm(dim=1)
    assert bool((gaps > 0).all())
    assert gaps.max() < (flat(plain)[0] - flat(plain)[1]).norm()


@pytest.mark.parametrize("members", [1, 2])
def test_batch_norm_has_the_statistics_of_the_averaged_weights(members, X, y):
    """In evaluation, the normalised outputs of the first layer have mean 0 and variance 1 over the training rows."""
    training = MAP(SGD(0.1), epochs=4, batch_size=6, average=SWA(0.25))
    model = fitted(X, y, Ensemble(members, by=training), MLP((5,), norm="batch"))
    for member in range(members):
        module = model.posterior_.module_of(member).eval()
        seen = []
        norm = next(layer for layer in module.modules() if isinstance(layer, nn.BatchNorm1d))
        norm.register_forward_hook(lambda layer, _, out, seen=seen: seen.append((out - layer.bias) / layer.weight))
        with torch.no_grad():
            module(torch.from_numpy(X).float())
        torch.testing.assert_close(seen[0].mean(0), torch.zeros(5), atol=1e-5, rtol=0)
        torch.testing.assert_close(seen[0].var(0), torch.ones(5), atol=1e-3, rtol=0)


def test_validation_scores_the_averaged_weights(X, y):
    model = fitted(X, y, MAP(SGD(0.1), epochs=5, batch_size=6, average=EMA(0.9), validation=(X, y)))
    scores = model.posterior_.info["history"]["validation"]
    assert -model.log_prob(X, y).mean() == pytest.approx(min(scores), rel=1e-5)


class Interrupted(Exception):
    """What stands in for a power cut."""


@pytest.mark.parametrize("average", [EMA(0.9), SWA(0.2)], ids=repr)
def test_an_interrupted_average_resumes_to_the_same_bits(average, X, y, tmp_path):
    training = MAP(SGD(0.1), epochs=5, batch_size=6, average=average)

    def cut(event):
        if event.epoch == 3:
            raise Interrupted

    resumable = training(checkpoint=Checkpoint(tmp_path / "run.ckpt", seconds=0))
    with pytest.raises(Interrupted):
        fitted(X, y, resumable(callbacks=(cut,)))
    assert torch.equal(flat(fitted(X, y, resumable)), flat(fitted(X, y, training)))


def test_an_average_is_read_from_text_and_checked():
    assert MAP(average="ema(0.9)").average == EMA(0.9)
    with pytest.raises(SpecError, match="decay"):
        EMA(1.0)
    with pytest.raises(SpecError, match="start"):
        SWA(1.0)
