"""Every layer of a flow is invertible, and its log-determinant is that of the Jacobian."""

from __future__ import annotations

import math

import pytest
import torch

from likely.core.random import isolated
from likely.models.generative.base_density import BASES, BaseDensity
from likely.models.generative.transforms import (
    Affine,
    Chain,
    Continuous,
    LinearMap,
    Permutation,
    Planar,
    Radial,
    Spline,
    VelocityField,
    stack,
)
from likely.networks import MLP

NET = MLP((8, 8), activation="tanh")
D = 5


def layers_of(name, condition=None, width=D, away=0.3):
    """Layers with parameters far from the identity, in float64."""
    with isolated(0):
        options = {"network": NET, "layers": 3, "condition": condition}
        match name:
            case "linear":
                layers = Chain([LinearMap((2, 0, 1, 4, 3)), Permutation((4, 0, 1, 2, 3))])
            case "continuous":
                layers = VelocityField(Continuous(tol=1e-11), (width,), NET, condition)
            case "affine" | "spline":
                layers = stack({"affine": Affine(), "spline": Spline()}[name], (width,), **options)
            case "affine, mixed" | "spline, mixed":
                spec = {"affine": Affine(), "spline": Spline()}[name.split(",")[0]]
                layers = stack(spec, (width,), mixing="linear", **options)
            case "affine, in order" | "spline, in order":
                spec = {"affine": Affine(), "spline": Spline()}[name.split(",")[0]]
                layers = stack(spec, (width,), order="autoregressive", **options)
            case "planar" | "radial":
                layers = stack({"planar": Planar(), "radial": Radial()}[name], (width,), **options)
        for parameter in layers.parameters():
            parameter.data.add_(away * torch.randn(parameter.shape))
    return layers.double()


ALL = [
    *("affine", "spline", "affine, mixed", "spline, mixed", "affine, in order", "spline, in order"),
    *("planar", "radial", "linear", "continuous"),
]
ROWS = 2 * torch.randn(30, D, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def jacobian_log_det(layers, x, condition=None):
    rows = []
    for i, row in enumerate(x):
        own = None if condition is None else condition[i : i + 1]
        matrix = torch.autograd.functional.jacobian(lambda at, c=own: layers(at[None], c)[0][0], row)
        rows.append(torch.linalg.slogdet(matrix).logabsdet)
    return torch.stack(rows)


@pytest.mark.parametrize("name", ALL)
def test_inverse_gives_the_rows_back(name):
    layers, rows = layers_of(name), ROWS[:3] if name == "continuous" else ROWS
    with torch.no_grad():
        torch.testing.assert_close(layers.inverse(layers(rows)[0]), rows, atol=1e-10, rtol=0)


@pytest.mark.parametrize("name", ALL)
def test_log_determinant_is_that_of_the_jacobian(name):
    layers, rows = layers_of(name), ROWS[:1] if name == "continuous" else ROWS[:6]
    expected = jacobian_log_det(layers, rows)
    torch.testing.assert_close(layers(rows)[1].expand(len(rows)).detach(), expected, atol=1e-8, rtol=0)


@pytest.mark.parametrize("name", [name for name in ALL if name != "linear"])
def test_conditions_keep_layers_invertible(name):
    layers, rows = layers_of(name, (2,)), ROWS[:3] if name == "continuous" else ROWS
    condition = torch.randn(len(rows), 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        z = layers(rows, condition)[0]
        torch.testing.assert_close(layers.inverse(z, condition), rows, atol=1e-10, rtol=0)
        assert (layers(rows, condition.flip(0))[0] - z).abs().max() > 1e-3


@pytest.mark.parametrize("name", ["affine", "spline", "affine, in order", "spline, in order", "planar", "radial"])
def test_one_column_is_enough(name):
    layers = layers_of(name, width=1)
    x = torch.linspace(-4, 4, 50, dtype=torch.float64)[:, None]
    with torch.no_grad():
        z = layers(x)[0]
        assert (z.diff(dim=0) > 0).all()  # increasing
        torch.testing.assert_close(layers.inverse(z), x, atol=1e-10, rtol=0)


@pytest.mark.parametrize(
    ("name", "base"),
    [
        *((name, "normal") for name in ALL if name != "linear"),
        *(("affine", base) for base in BASES if base != "normal"),
    ],
)
def test_density_integrates_to_one(name, base):
    """Nearer to the identity than elsewhere: steep splines need a finer grid."""
    layers, density = layers_of(name, width=2, away=0.1), BaseDensity(base, (2,)).double()
    count, reach = (80, 8.0) if name == "continuous" else (400, 60.0)
    sinh = torch.linspace(-math.asinh(reach), math.asinh(reach), count, dtype=torch.float64)  # fine in the middle
    x, step = sinh.sinh(), sinh.cosh() * (sinh[1] - sinh[0])
    grid = torch.cartesian_prod(x, x)
    if name == "continuous":
        layers.spec = Continuous(tol=1e-3)
    with torch.no_grad():
        z, log_det = layers(grid)
        mass = (density.log_prob(z) + log_det).exp() @ torch.cartesian_prod(step, step).prod(1)
    assert float(mass) == pytest.approx(1.0, abs=0.01)
