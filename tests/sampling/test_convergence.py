"""R-hat and ESS against ArviZ."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from likely.sampling.chains import arviz
from likely.sampling.convergence import diagnose


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.95, -0.5])
@pytest.mark.parametrize(("chains", "draws"), [(4, 200), (3, 51), (40, 30), (2, 10)])
def test_rhat_and_ess_are_those_of_arviz(chains, draws, correlation, rng):
    x = rng.normal(size=(chains, draws, 4))
    for step in range(1, draws):
        x[:, step] += correlation * x[:, step - 1]
    x[..., 1] = np.exp(3 * x[..., 1])  # heavy tails
    x[..., 2] = np.round(x[..., 2])  # ties
    x[0, :, 3] += 2  # a chain apart
    library = arviz()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dataset = library.convert_to_dataset({"x": x})
        expected = library.rhat(dataset)["x"].values, library.ess(dataset)["x"].values
    rhat, ess = diagnose(x)
    np.testing.assert_allclose(rhat, expected[0], rtol=1e-10)
    np.testing.assert_allclose(ess, expected[1], rtol=1e-9)


def test_what_never_moves_has_no_rhat(rng):
    rhat, ess = diagnose(np.stack([np.ones((4, 20)), rng.normal(size=(4, 20))], -1))
    assert np.isnan(rhat[0])
    assert rhat[1] < 1.2
    assert ess[1] > 20
    assert np.isnan(diagnose(rng.normal(size=(4, 3, 2)))).all()
