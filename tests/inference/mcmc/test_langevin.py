"""Langevin as an inference: adjusted it may reject, unadjusted it never does."""

from __future__ import annotations

import numpy as np
import pytest

from likely import Regressor, priors
from likely.core.errors import SpecError
from likely.inference import Langevin
from likely.likelihoods import Normal
from likely.sampling import langevin

X, Y = np.array([[0.0], [1.0], [2.0]]), np.array([1.0, 3.0, 5.0])


def fitted(inference):
    return Regressor(Normal(0.5), prior=priors.Normal(1.0), inference=inference, random_state=0).fit(X, Y)


def test_the_sampler_has_the_values_that_were_given():
    assert Langevin(step_size=0.3, adjusted=False).sampler() == langevin.Langevin(step_size=0.3, adjusted=False)


@pytest.mark.filterwarnings("ignore::likely.core.errors.ConvergenceWarning")
def test_steps_without_a_rejection_are_all_taken():
    """At one fixed ε the unadjusted chain moves at each step; the adjusted one repeats some draws."""
    for adjusted in (True, False):
        by = Langevin(chains=2, draws=100, warmup=0, thin=1, step_size=1.5, adjusted=adjusted)
        chain = fitted(by).posterior_.parameters["network.weight"].reshape(2, 100)
        repeated = int((chain[:, 1:] == chain[:, :-1]).sum())
        assert (repeated > 0) == adjusted


def test_a_step_that_is_not_positive_is_refused():
    with pytest.raises(SpecError, match="step_size must be"):
        Langevin(step_size=-0.1)
