"""What every emission promises: the differentiable density is `log_prob`, and φ stands for the same parameters."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from likely.core.errors import ModelFileError
from likely.likelihoods import Categorical, MultivariateNormal, Normal, Poisson
from likely.models.emissions import Columns, Emission, GaussianEmission

ROWS, STARTS, COMPONENTS = 12, 2, 3
GAUSSIANS = ("full", "tied", "diag", "spherical")
LIKELIHOODS = {"poisson": Poisson(), "vector": MultivariateNormal(), "mixed": (Normal(), Categorical(), Poisson())}


def bound(kind, missing=False):
    """An emission bound to rows, and parameters of three components from random weights of these rows."""
    x = torch.poisson(torch.full((ROWS, 3), 2.0, dtype=torch.float64)).clamp_max(4)
    x[:5, 1] = torch.arange(5).double()
    if missing:
        x[::3, 0], x[1::4, 2] = torch.nan, torch.nan
        if kind == "vector":  # a vector is there or it is not
            x[:, :] = torch.where(x.isnan().any(1, keepdim=True), torch.nan, x)
    emission = GaussianEmission(3, kind, 1e-3) if kind in GAUSSIANS else Columns.of(LIKELIHOODS[kind], x)
    emission.bind(x, None)
    totals = emission.zeros(STARTS, COMPONENTS)
    weight = torch.rand(ROWS, STARTS, COMPONENTS, dtype=torch.float64).softmax(-1)
    emission.accumulate(totals, None, x, weight, slice(0, ROWS))
    return emission, x, emission.maximise(None, totals)


@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
@pytest.mark.parametrize("kind", [*GAUSSIANS, *LIKELIHOODS])
def test_the_smooth_density_is_the_density(kind, missing):
    emission, x, params = bound(kind, missing)
    log_prob = emission.smooth_log_prob(params, x)
    assert log_prob.shape == (ROWS, STARTS, COMPONENTS)
    torch.testing.assert_close(log_prob, emission.log_prob(params, x), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
@pytest.mark.parametrize("kind", [*GAUSSIANS, *LIKELIHOODS])
def test_the_gradient_is_that_of_differences(kind, missing):
    emission, x, params = bound(kind, missing)
    free = {name: value.clone().requires_grad_() for name, value in emission.to_free(params).items()}

    def value(moved):
        return emission.smooth_log_prob(emission.from_free(moved), x).sum()

    value(free).backward()
    for name, start in free.items():
        step = torch.randn_like(start)
        there, back = (value({**free, name: start + sign * 1e-5 * step}) for sign in (1, -1))
        expected = (there - back) / 2e-5
        torch.testing.assert_close((start.grad * step).sum(), expected.detach(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
@pytest.mark.parametrize("kind", [*GAUSSIANS, *LIKELIHOODS])
def test_the_way_back_is_that_of_autograd(kind, missing):
    emission, x, params = bound(kind, missing)
    free = emission.to_free(params)
    weight = torch.randn(ROWS, STARTS, COMPONENTS, dtype=torch.float64)
    (value, pull), (expected, by_autograd) = (
        way(free, x) for way in (emission.log_prob_and_pull, partial(Emission.log_prob_and_pull, emission))
    )
    torch.testing.assert_close(value, expected, rtol=1e-9, atol=1e-9)
    gradient = pull(weight)
    for name, own in by_autograd(weight).items():
        torch.testing.assert_close(gradient[name], own, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("kind", [*GAUSSIANS, *LIKELIHOODS])
def test_free_parameters_stand_for_the_same_ones(kind):
    emission, _, params = bound(kind)
    for name, value in emission.from_free(emission.to_free(params)).items():
        torch.testing.assert_close(value, params[name], rtol=1e-9, atol=1e-9)


def test_the_background_is_the_mean_log_density_of_all_rows():
    emission, x, params = bound("poisson")
    emission.smoothing = 0.5
    log_prob, fraction = emission.log_prob(params, x), torch.rand(ROWS, dtype=torch.float64)
    expected = 0.5 * torch.einsum("n,nsk->s", fraction, log_prob)
    torch.testing.assert_close(emission.background(params, x, log_prob, fraction), expected)


def test_parameters_of_other_rows_are_refused():
    emission, _, params = bound("full")
    own = {name: value[0] for name, value in params.items()}
    emission.check_params(own, COMPONENTS, 3)
    with pytest.raises(ModelFileError, match="The file has distributions of 3 columns for rows of 4"):
        emission.check_params(own, COMPONENTS, 4)
    with pytest.raises(ModelFileError, match=r"parameters that no GaussianEmission has: \['eta'\]"):
        emission.check_params({**own, "eta": own["mean"]}, COMPONENTS, 3)
