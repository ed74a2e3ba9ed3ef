"""Every layer of a flow is invertible, and its log-determinant is that of the Jacobian."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from likely.core.errors import SpecError
from likely.core.random import isolated
from likely.models.generative.base_density import BASES, BaseDensity
from likely.models.generative.divergence import signs_like
from likely.models.generative.transforms import (
    Affine,
    Chain,
    Continuous,
    LinearMap,
    Permutation,
    Planar,
    Radial,
    Spline,
    Squeeze,
    Units,
    VelocityField,
    stack,
)
from likely.models.generative.transforms.ode import adaptive, fixed
from likely.networks import MLP, ConvNet, UNet

NET = MLP((8, 8), activation="tanh")
D = 5


def layers_of(name, condition=None, width=D):
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
            parameter.data.add_(0.3 * torch.randn(parameter.shape))
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
        *(("affine", base) for base in BASES),
        *((name, "normal") for name in ("spline, mixed", "spline, in order", "planar", "radial", "continuous")),
    ],
)
def test_density_integrates_to_one(name, base):
    layers, density = layers_of(name, width=2), BaseDensity(base, (2,)).double()
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


# --- splines ----------------------------------------------------------------------------------------------------------
def test_splines_are_finite_and_continuous_far_outside():
    spline = Spline(bins=6, bound=3.0)
    raw = 5 * torch.randn(1, spline.size, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    ends = torch.tensor([-3.0, 3.0], dtype=torch.float64)
    beside = torch.cat([ends - 1e-9, ends, ends + 1e-9])[:, None]
    z, log_gradient = spline.forward(beside, raw)
    torch.testing.assert_close(z, beside, atol=1e-6, rtol=0)
    far = torch.tensor([-1e30, -3.5, 3.5, 1e30, 1e-300], dtype=torch.float64)[:, None]
    z, log_gradient = spline.forward(far, raw)
    torch.testing.assert_close(z[:4], far[:4])
    torch.testing.assert_close(log_gradient[:4], torch.zeros(4, 1, dtype=torch.float64), atol=1e-12, rtol=0)
    assert z.isfinite().all()
    assert spline.inverse(far, raw).isfinite().all()


@pytest.mark.parametrize("size", [50.0, 1e4])
def test_splines_bear_extreme_parameters(size):
    spline = Spline()
    random = torch.Generator().manual_seed(0)
    raw = (size * torch.randn(200, spline.size, generator=random)).requires_grad_()
    x = (8 * torch.randn(200, 1, generator=random)).requires_grad_()
    z, log_gradient = spline.forward(x, raw)
    (z.sum() + log_gradient.sum()).backward()
    assert all(part.isfinite().all() for part in (z, log_gradient, raw.grad, x.grad))
    assert spline.inverse(z, raw).isfinite().all()


def test_splines_start_as_the_identity():
    x = torch.linspace(-9, 9, 101, dtype=torch.float64)[:, None]
    z, log_gradient = Spline().forward(x, torch.zeros(101, Spline().size, dtype=torch.float64))
    torch.testing.assert_close(z, x)
    torch.testing.assert_close(log_gradient, torch.zeros_like(x), atol=1e-12, rtol=0)


def test_affine_scales_stay_within_their_limit():
    _, log_gradient = Affine(1.5).forward(torch.ones(2, 1), torch.tensor([[0.0, 1e6], [0.0, -1e6]]))
    assert log_gradient.ravel().tolist() == [1.5, -1.5]


# --- planar and radial ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["planar", "radial"])
def test_any_parameters_give_an_invertible_layer(name):
    """The constraint holds far out: parameters of size 30 try to fold space."""
    with isolated(3):
        layers = stack({"planar": Planar(), "radial": Radial()}[name], (D,), layers=4).double()
        for parameter in layers.parameters():
            parameter.data.normal_(0.0, 30.0)
    with torch.no_grad():
        z, log_det = layers(ROWS)
        assert log_det.isfinite().all()
        back = layers.inverse(z)
    # where a layer squeezes by e^-60, digits of x are lost in z: the image of what came back is what can be asked
    torch.testing.assert_close(layers(back)[0].detach(), z, atol=1e-9, rtol=1e-9)


# --- images -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("network", [ConvNet((4,), activation="tanh"), UNet((2, 4), norm=None, activation="tanh")])
@pytest.mark.parametrize("mixing", ["permutation", "linear"])
def test_images_come_back(network, mixing):
    with isolated(0):
        layers = stack(Affine(), (2, 8, 4), network=network, layers=4, mixing=mixing).double()
        for parameter in layers.parameters():
            parameter.data.add_(0.1 * torch.randn(parameter.shape))
        x = torch.randn(3, 2, 8, 4).double()
    with torch.no_grad():
        z, log_det = layers(x)
        assert z.shape == x.shape
        torch.testing.assert_close(layers.inverse(z), x, atol=1e-10, rtol=0)
    matrix = torch.autograd.functional.jacobian(lambda at: layers(at[None])[0].ravel(), x[0]).flatten(1)
    torch.testing.assert_close(log_det[0], torch.linalg.slogdet(matrix).logabsdet, atol=1e-8, rtol=0)


def test_squeezing_keeps_every_number():
    x = torch.arange(48.0).reshape(1, 4, 6, 2)
    z = Squeeze()(x)[0]
    assert z.shape == (1, 2, 3, 8)
    assert sorted(z.ravel().tolist()) == x.ravel().tolist()
    assert z[0, 0, 0].tolist() == [0, 1, 2, 3, 12, 13, 14, 15]
    assert torch.equal(Squeeze().inverse(z), x)


def test_networks_without_an_answer_per_pixel_are_refused():
    with pytest.raises(SpecError, match="no answer per pixel"):
        stack(Affine(), (1, 4, 4), network=UNet((2,), output="mean"))


# --- units ------------------------------------------------------------------------------------------------------------
def test_heavy_tails_are_drawn_in_and_come_back():
    rng = np.random.default_rng(0)
    x = torch.from_numpy(np.column_stack([rng.normal(5, 2, 500), rng.standard_cauchy(500)]))
    units = Units((2,)).double()
    units.adapt(x, None)
    assert units.heavy.tolist() == [0.0, 1.0]
    z, log_det = units(x)
    assert z[:, 1].abs().max() < 12
    torch.testing.assert_close(units.inverse(z), x, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(log_det[:5], jacobian_log_det(units, x[:5]))


def test_weights_decide_the_units():
    x = torch.tensor([[0.0], [10.0], [1000.0]], dtype=torch.float64)
    units = Units((1,)).double()
    units.adapt(x, torch.tensor([1.0, 1.0, 0.0]))
    assert units.centre.tolist() == [5.0]
    assert units.scale.tolist() == [5.0]


# --- differential equations -------------------------------------------------------------------------------------------
def test_solvers_have_their_orders():
    def turning(t, state):
        x = state[0]
        return (torch.stack([-x[:, 1], x[:, 0]], 1) * (1 + t),)

    start = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    angle = torch.tensor(1.5, dtype=torch.float64)  # ∫ (1 + t) dt
    expected = torch.stack([angle.cos(), angle.sin()])[None]
    errors = []
    for steps in (10, 20):
        *_, (end,) = fixed(turning, (start,), 0.0, 1.0, steps)
        errors.append(float((end - expected).norm()))
    assert errors[0] / errors[1] == pytest.approx(16, rel=0.2)  # fourth order
    for tol in (1e-4, 1e-7, 1e-10):
        (end,) = adaptive(turning, (start,), 0.0, 1.0, tol)
        assert float((end - expected).norm()) < 10 * tol


def test_a_linear_field_has_the_closed_form_of_gaussians():
    """dx/dt = A x carries N(0, I) to N(0, e^A e^Aᵀ)."""
    matrix = torch.tensor([[0.5, 0.3], [-0.4, 0.2]], dtype=torch.float64)
    field = VelocityField(Continuous(tol=1e-10), (2,), MLP(())).double()
    with torch.no_grad():
        affine = field.field.network.network
        affine.weight.zero_()
        affine.weight[:, :2] = matrix  # and none of the features of time
        affine.bias.zero_()
        x = torch.randn(20, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        z, log_det = field(x)
        root = torch.linalg.matrix_exp(matrix)
        expected = torch.distributions.MultivariateNormal(torch.zeros(2).double(), root @ root.mT).log_prob(x)
        torch.testing.assert_close(BaseDensity("normal", (2,)).log_prob(z) + log_det, expected, atol=1e-8, rtol=0)


def test_hutchinson_is_unbiased():
    """The mean of 2000 estimates is within 5 standard errors of the trace: false alarms below 1 in a million."""
    field = layers_of("continuous")
    with torch.no_grad(), isolated(0):
        exact = field._with_trace(ROWS[:1], 0.5, None, None)[1]
        rows = ROWS[:1].expand(2000, -1)
        draws = field._with_trace(rows, 0.5, None, signs_like(rows))[1]
    assert abs(float(draws.mean() - exact)) < 5 * float(draws.std()) / math.sqrt(2000) + 1e-12


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Spline(bins=1), "bins must be an integer from 2 to 512"),
        (lambda: Spline(bound=0.0), "bound must be above 0"),
        (lambda: Affine(limit=-1.0), "limit must be above 0"),
        (lambda: Continuous(trace="none"), 'trace must be "exact" or "hutchinson"'),
        (lambda: Continuous(tol=0.0), "tol must be from 1e-13"),
        (lambda: Continuous(steps=0), "steps must be an integer from 1"),
        (lambda: Continuous(training="score"), 'training must be "matching" or "likelihood"'),
    ],
)
def test_choices_that_mean_nothing_are_named(make, message):
    with pytest.raises(SpecError, match=message):
        make()
