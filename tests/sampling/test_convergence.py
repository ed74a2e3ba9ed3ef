"""R-hat and ESS against ArviZ."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from likely.sampling.chains import arviz
from likely.sampling.convergence import diagnose


@pytest.fixture
def rng(seed):
    return np.random.default_rng(seed)


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.95, -0.5])
@pytest.mark.parametrize(("chains", "draws"), [(4, 200), (3, 51), (40, 30), (2, 10)])
def test_rhat_and_ess_are_those_of_arviz(chains, draws, correlation, rng):
    """Of many quantities, since few of short chains take each of the ways on which the sum over lags may end."""
    x = rng.normal(size=(chains, draws, 40))
    for step in range(1, draws):
        x[:, step] += correlation * x[:, step - 1]
    x[..., 10:20] = np.exp(3 * x[..., 10:20])  # heavy tails
    x[..., 20:30] = np.round(x[..., 20:30])  # ties
    x[0, :, 30:] += 2  # a chain apart
    library = arviz()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dataset = library.convert_to_dataset({"x": x})
        expected = library.rhat(dataset)["x"].values, library.ess(dataset)["x"].values
    rhat, ess = diagnose(x)
    np.testing.assert_allclose(rhat, expected[0], rtol=1e-10)
    np.testing.assert_allclose(ess, expected[1], rtol=1e-9)


def test_what_never_moves_has_no_rhat(rng):
    """Beside it, independent draws: of 20,000 one had R-hat above 1.2 and one less than 20 effective draws."""
    rhat, ess = diagnose(np.stack([np.ones((4, 20)), rng.normal(size=(4, 20))], -1))
    assert np.isnan(rhat[0])
    assert rhat[1] < 1.3
    assert ess[1] > 15
    assert np.isnan(diagnose(rng.normal(size=(4, 3, 2)))).all()
