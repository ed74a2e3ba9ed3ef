"""R-hat and ESS against ArviZ."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from likely.sampling.chains import arviz
from likely.sampling.convergence import AGREE, agree, diagnose


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


def autoregressive(rng, shape, correlation):
    """Stationary chains whose correlations are ρᵗ: (chains, draws, k)."""
    x = rng.normal(size=shape) * np.sqrt(1 - correlation**2)
    x[:, 0] = rng.normal(size=(shape[0], shape[2]))
    for step in range(1, shape[1]):
        x[:, step] += correlation * x[:, step - 1]
    return x


@pytest.mark.parametrize(("chains", "draws", "correlation"), [(100, 50, 0.7), (300, 100, 0.8), (1000, 20, 0.5)])
def test_short_chains_agree_though_their_rhat_is_large(chains, draws, correlation, rng):
    """A false alarm in a thousand by design. R-hat² is about 1 + (τ − 1)/n."""
    x = autoregressive(rng, (chains, draws, 10), correlation)
    rhat = diagnose(x)[0]
    tau, n = (1 + correlation) / (1 - correlation), draws // 2
    np.testing.assert_allclose(rhat, (1 + (tau - 1) / n) ** 0.5, atol=0.04)
    assert (rhat > AGREE).all()
    assert agree(x).all()
    apart = x + 2 * (np.arange(chains) % 2)[:, None, None]  # two groups, two standard deviations apart
    assert not agree(apart).any()
    wide = x * (1 + 4 * (np.arange(chains) % 2))[:, None, None]
    assert not agree(wide).any()
    drifting = x + np.linspace(0, 3, draws)[:, None]
    assert not agree(drifting).any()


def test_few_or_sticky_chains_are_not_excused(rng):
    """Four chains of 300 draws worth 16, and many that have not forgotten where they began."""
    few = autoregressive(rng, (4, 300, 60), 0.97)
    assert ((diagnose(few)[0] > AGREE) == ~agree(few)).all()
    sticky = autoregressive(rng, (500, 40, 5), 0.95)
    assert not agree(sticky).any()
    still = np.ones((4, 20, 1))
    assert agree(still).all()
    assert agree(still[:, :3]).all()
    assert not agree(np.arange(40.0)[:, None, None] * np.ones((1, 100, 2))).any()  # each stands at its own place
