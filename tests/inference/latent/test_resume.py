"""Chains over the parameters of models with hidden variables resume to the same bits, wherever they were killed."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from likely import FactorAnalysis, GaussianMixture, HiddenMarkov, KalmanFilter, Mixture
from likely.core.errors import LikelyWarning
from likely.inference import HMC, NUTS, Checkpoint
from likely.likelihoods import Normal, Poisson

SHORT = {"chains": 2, "warmup": 20, "draws": 10}


class Interrupted(Exception):
    """What stands in for a power cut."""


def counts(rng):
    return np.concatenate([rng.poisson(2, 60), rng.poisson(12, 40)]).reshape(-1, 1)


def clouds(rng):
    return np.concatenate([rng.normal(size=(60, 2)), rng.normal(size=(40, 2)) + 4])


def regimes(rng):
    return rng.normal(np.where(np.repeat([0, 1, 0, 1], 20), 3.0, 0.0), 1.0).reshape(-1, 1)


def factors(rng):
    return rng.normal(size=(80, 2)) @ rng.normal(size=(2, 5)) + 0.5 * rng.normal(size=(80, 5))


CASES = {
    "Mixture, HMC": (lambda **k: Mixture(Poisson(), 2, inference=HMC(**SHORT, **k), random_state=0), counts),
    "Mixture, NUTS": (lambda **k: Mixture(Poisson(), 2, inference=NUTS(**SHORT, **k), random_state=0), counts),
    "GaussianMixture": (lambda **k: GaussianMixture(2, inference=HMC(**SHORT, **k), random_state=0), clouds),
    "HiddenMarkov": (lambda **k: HiddenMarkov(Normal(), 2, inference=HMC(**SHORT, **k), random_state=0), regimes),
    "FactorAnalysis": (lambda **k: FactorAnalysis(2, inference=HMC(**SHORT, **k), random_state=0), factors),
    "KalmanFilter": (lambda **k: KalmanFilter(1, inference=HMC(**SHORT, **k), random_state=0), regimes),
}


def until(step):
    """A callback that raises once a chain has made so many steps."""

    def callback(event):
        if event.step == step:
            raise Interrupted

    return (callback,)


@pytest.mark.parametrize("name", CASES)
def test_a_killed_chain_resumes_to_the_same_bits(name, rng, tmp_path):
    make, data = CASES[name]
    X = data(rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LikelyWarning)
        whole = make().fit(X)
        saved = Checkpoint(tmp_path / "run.ckpt", seconds=0)
        for step in (4, 17, 26):  # in the warm-up twice, and among the draws
            with pytest.raises(Interrupted):
                make(checkpoint=saved, callbacks=until(step)).fit(X)
        resumed = make(checkpoint=saved).fit(X)
    for draw, value in whole.draws_.items():
        np.testing.assert_array_equal(resumed.draws_[draw], value, err_msg=draw)
    np.testing.assert_array_equal(resumed.log_prob(X), whole.log_prob(X))
