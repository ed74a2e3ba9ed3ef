from __future__ import annotations

import numpy as np
import pytest

from likely import Forecaster
from likely.core.errors import SpecError
from likely.inference import MAP
from likely.likelihoods import Categorical, Normal
from likely.models.forecasting import ExponentialSmoothing, Naive
from likely.models.forecasting.direct import Direct
from likely.models.forecasting.engines import as_dynamics, engine_of
from likely.models.forecasting.recursion import Recursion
from likely.models.forecasting.simulation import Simulation
from likely.models.forecasting.smoothing import Smoother
from likely.networks import MLP

WALK = np.random.default_rng(0).normal(size=60).cumsum()


@pytest.mark.parametrize(
    ("arguments", "engine"),
    [
        ({}, Recursion),
        ({"horizon": 2}, Direct),
        ({"likelihood": Normal(scale="input"), "inference": MAP(epochs=2)}, Simulation),
        ({"network": MLP((2,)), "inference": MAP(epochs=2)}, Simulation),
        ({"network": Naive()}, Recursion),
        ({"network": ExponentialSmoothing()}, Smoother),
    ],
)
def test_the_engine_follows_from_the_arguments(arguments, engine):
    model = Forecaster(**{"lags": 2, "random_state": 0, "transform": "none", **arguments}).fit(WALK)
    assert isinstance(engine_of(model, lambda drawn: drawn), engine)
    assert model.predict(2).shape == (2,)


def test_a_likelihood_of_classes_and_covariates_of_dynamics_are_refused():
    assert as_dynamics(MLP()) is None
    with pytest.raises(SpecError, match="needs a likelihood of single numbers"):
        Forecaster(Categorical(), lags=2).fit(np.arange(20) % 3)
    with pytest.raises(SpecError, match="no place for covariates"):
        Forecaster(network=Naive(), covariates=(1,)).fit(np.column_stack([WALK, WALK]))
