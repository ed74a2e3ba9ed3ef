"""Callbacks: every method that runs steps calls them with what it reports, and ends when one says so."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from likely import Classifier
from likely.core.callbacks import Epoch, stopped
from likely.core.checkpoint import Checkpoint
from likely.core.errors import TrainingError
from likely.inference import HMC, MAP, NUTS, SGHMC, SGLD, Distill, Ensemble, MCDropout, PACBayes, Variational

START = MAP(epochs=2)
METHODS = {
    "MAP": (MAP(epochs=6), "loss"),
    "Variational": (Variational(steps=6, samples=2, draws=4, by=START), "elbo"),
    "PACBayes": (PACBayes(steps=6, checks=8, draws=3), "bound"),
    "SGLD": (SGLD(chains=2, draws=6, warmup=0, thin=1, by=START), "log_prob"),
    "SGHMC": (SGHMC(chains=2, draws=6, warmup=0, thin=1, by=START), "log_prob"),
    "HMC": (HMC(chains=2, draws=4, warmup=2), "acceptance"),
    "NUTS": (NUTS(chains=2, draws=4, warmup=2), "acceptance"),
}


def fitted(inference):
    X = np.random.default_rng(0).normal(size=(40, 2))
    return Classifier(prior="normal(1.0)", inference=inference, random_state=0).fit(X, X[:, 0] > 0)


def draws(model):
    return torch.cat([value.flatten() for value in model.posterior_.parameters.values()])


@pytest.mark.parametrize("name", METHODS)
def test_every_method_tells_what_it_reports_and_draws_the_same(name):
    inference, number = METHODS[name]
    seen: list[Epoch] = []
    watched = fitted(inference.replace(callbacks=(seen.append,)))
    assert [event.epoch for event in seen] == [1, 2, 3, 4, 5, 6]
    assert all(np.isfinite(event.numbers[number]) for event in seen)
    assert torch.equal(draws(watched), draws(fitted(inference)))


@pytest.mark.parametrize("name", METHODS)
def test_a_callback_that_returns_true_ends_the_fit(name):
    inference, _ = METHODS[name]
    seen: list[Epoch] = []

    def watch(event):
        seen.append(event)
        return event.epoch == 4

    model = fitted(inference.replace(callbacks=(watch,)))
    assert [event.epoch for event in seen] == [1, 2, 3, 4]
    assert bool(draws(model).isfinite().all())
    if name in ("HMC", "NUTS"):
        assert len(model.posterior_) == 2 * 2


@pytest.mark.parametrize("wrap", [Ensemble(2, by=MAP()), MCDropout(4, by=MAP()), Distill(by=MAP())], ids=str)
def test_methods_around_another_pass_its_callbacks_on(wrap):
    seen: list[Epoch] = []
    inner = MAP(epochs=3, callbacks=(seen.append,))
    if isinstance(wrap, Distill):
        teacher = fitted(MAP(epochs=2))
        wrap = wrap.replace(teacher=teacher)
    X = np.random.default_rng(0).normal(size=(40, 2))
    network = "mlp([4], dropout=0.5)" if isinstance(wrap, MCDropout) else "mlp([4])"
    Classifier(network=network, inference=wrap.replace(by=inner), random_state=0).fit(X, X[:, 0] > 0)
    assert [event.epoch for event in seen] == [1, 2, 3]


@pytest.mark.parametrize("inference", [SGLD(warmup=9, by=START), HMC(chains=2, warmup=9)], ids=["SGLD", "HMC"])
def test_chains_that_end_before_a_draw_say_so(inference):
    with pytest.raises(TrainingError, match=r"A callback ended .* before there was a draw"):
        fitted(inference.replace(callbacks=(lambda event: True,)))


def test_chains_that_a_callback_ended_stay_so_when_they_are_taken_up_again(tmp_path):
    path = Checkpoint(str(tmp_path / "run.ckpt"), seconds=0)
    ended = fitted(HMC(chains=2, draws=6, warmup=2, checkpoint=path, callbacks=(lambda event: event.step == 5,)))
    again = fitted(HMC(chains=2, draws=6, warmup=2, checkpoint=path))
    assert len(again.posterior_) == 2 * 3
    assert torch.equal(draws(ended), draws(again))


def test_all_callbacks_are_called_even_if_the_first_one_stops():
    seen: list[Epoch] = []
    assert stopped((lambda event: True, seen.append), 2, 10, {"elbo": -1.0})
    assert seen == [Epoch(2, 10, {"elbo": -1.0})]
    assert seen[0].loss is None
    assert not stopped((lambda event: 1,), 2, 10, {})
