"""A lost component begins again where the data are explained worst, and the likelihood does not fall."""

from __future__ import annotations

import pytest
import torch
from scipy.optimize import minimize_scalar

from likely.models.emissions import GaussianEmission
from likely.models.mixtures.components import Components
from likely.models.mixtures.reseed import best_fraction, reseed


def test_the_best_weight_is_that_of_a_line_search():
    log_ratio, weight = 2 * torch.randn(40, dtype=torch.float64), torch.rand(40, dtype=torch.float64)

    def cost(delta):
        return -float(weight @ torch.log(1 - delta + delta * log_ratio.exp()))

    expected = minimize_scalar(cost, bounds=(0, 1), method="bounded", options={"xatol": 1e-9}).x
    assert 0.01 < expected < 0.99
    assert best_fraction(log_ratio, weight) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("log_ratio", "expected"), [([-1.0, -2.0], 0.0), ([1.0, 2.0], 1.0), ([1e4, -1e4], 0.5), ([0.0, 0.0], 0.0)]
)
def test_the_best_weight_at_its_ends(log_ratio, expected):
    weight = torch.ones(2, dtype=torch.float64)
    assert best_fraction(torch.tensor(log_ratio, dtype=torch.float64), weight) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("kind", ["full", "diag", "tied"])
def test_a_lost_component_begins_at_the_worst_row(kind):
    x = torch.cat([torch.randn(40, 2), 30 + torch.randn(8, 2)]).double()
    model = Components(GaussianEmission(2, kind), x, None, 2, "random")
    ones = torch.ones(1, 2, 2, dtype=torch.float64)  # both components are of the cloud around 0
    covariance = {"full": torch.diag_embed(ones), "diag": ones, "tied": torch.diag_embed(ones[:, :1])}[kind]
    params = model.emission.complete({"mean": 0 * ones, "covariance": covariance})
    params["weights"] = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    before = model.log_likelihood(params)
    worst = int(model.row_log_prob(params, x)[:, 0].argmin())
    assert reseed(model, params, 0, 1) == worst >= 40
    assert model.log_likelihood(params) > before + 1
    assert float(params["weights"].sum()) == pytest.approx(1, rel=1e-12)
    assert float(params["weights"][0, 1]) > 0


def test_where_nothing_is_gained_nothing_changes():
    x = torch.zeros(20, 1, dtype=torch.float64)
    x[0] = 1e-3
    model = Components(GaussianEmission(1, "full", floor=1e6), x, None, 2, "random")
    params = model.start([0])
    params["weights"] = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    before = {name: value.clone() for name, value in params.items()}
    reseed(model, params, 0, 1)
    for name, value in params.items():
        torch.testing.assert_close(value, before[name], rtol=1e-9, atol=1e-12)
