from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats
from torch import distributions as td

from likely.core.errors import DataError, SpecError
from likely.models.forecasting.scale import Mapped, Scale, bend, choose_transform, mapped, remade, unbend
from likely.probability.quantiles import quantile


@pytest.mark.parametrize("transform", ["none", "log", "sqrt", "log1p"])
def test_bending_and_unbending_are_inverse_with_this_slope(transform):
    y = np.array([0.5, 1.0, 3.0])
    np.testing.assert_allclose(unbend(transform, bend(transform, y)), y, rtol=1e-12)
    scale, step = Scale(transform, 0.3, 2.0), 1e-6
    slope = (scale.forward(y + step) - scale.forward(y - step)) / (2 * step)
    np.testing.assert_allclose(scale.log_slope(y), np.log(slope), atol=1e-6)


@pytest.mark.parametrize(
    ("values", "real", "chosen"),
    [([1.0, 9.0], True, "log"), ([0.0, 9.0], True, "sqrt"), ([-1.0, 9.0], True, "none"), ([0.0, 9.0], False, "log1p")],
)
def test_the_transform_follows_from_the_smallest_value(values, real, chosen):
    assert choose_transform("auto", np.array(values), real) == chosen


def test_a_transform_that_the_values_do_not_allow_is_refused():
    with pytest.raises(DataError, match="needs values above 0; the series has -1"):
        choose_transform("log", np.array([-1.0, 2.0]), True)
    with pytest.raises(SpecError, match="transform must be"):
        choose_transform("cube", np.array([1.0]), True)


def test_a_mapped_normal_is_the_log_normal():
    z = td.Normal(torch.tensor([0.0, 0.5]).double(), torch.tensor([0.3, 0.2]).double())
    y, peer = Mapped(z, "log"), td.LogNormal(z.loc, z.scale)
    at = torch.tensor([1.1, 1.7]).double()
    torch.testing.assert_close(y.log_prob(at), peer.log_prob(at))
    torch.testing.assert_close(y.cdf(at), peer.cdf(at))
    torch.testing.assert_close(y.mean, peer.mean, rtol=1e-3, atol=0)
    torch.testing.assert_close(y.variance, peer.variance, rtol=0.02, atol=0)
    assert isinstance(mapped(z, Scale("log", torch.tensor(0.0), torch.tensor(1.0))), td.LogNormal)


@pytest.mark.parametrize("transform", ["sqrt", "log1p"])
def test_closed_moments_are_those_of_the_quadrature(transform):
    z = td.Normal(torch.tensor([-0.2, 0.1, 2.0]).double(), torch.tensor([0.5, 0.3, 0.2]).double())
    closed, values = Mapped(z, transform), Mapped(z, transform)._values()
    torch.testing.assert_close(closed.mean, values.mean(0), rtol=0.01, atol=1e-3)
    torch.testing.assert_close(closed.variance, values.var(0, correction=0), rtol=0.05, atol=1e-3)


def test_a_mixture_is_mapped_part_by_part():
    parts = td.Normal(torch.tensor([[-1.0, 2.0]]).double(), torch.tensor([[0.5, 0.5]]).double())
    mixture = td.MixtureSameFamily(td.Categorical(torch.tensor([[0.5, 0.5]]).double()), parts)
    moved = mapped(mixture, Scale("none", torch.tensor([3.0]).double(), torch.tensor([2.0]).double()))
    torch.testing.assert_close(moved.mean, 3 + 2 * mixture.mean)
    torch.testing.assert_close(moved.variance, 4 * mixture.variance)
    bent = mapped(mixture, Scale("sqrt", torch.tensor([0.0]).double(), torch.tensor([1.0]).double()))
    torch.testing.assert_close(quantile(bent, 0.9), quantile(mixture, 0.9) ** 2)


def test_student_keeps_its_degrees_and_parameters_can_be_picked():
    z = td.StudentT(torch.tensor([5.0, 5.0]).double(), torch.zeros(2).double(), torch.ones(2).double())
    moved = mapped(z, Scale("none", torch.tensor(1.0), torch.tensor(2.0)))
    expected = stats.t.logpdf(2.5, 5, 1, 2)
    np.testing.assert_allclose(moved.log_prob(torch.tensor([2.5, 2.5]).double()), expected)
    assert remade(moved, lambda value: value[:1]).batch_shape == (1,)
    with pytest.raises(SpecError, match="no units"):
        mapped(td.Poisson(torch.ones(1)), Scale("none"))
