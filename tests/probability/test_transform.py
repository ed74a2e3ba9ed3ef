"""The density of a transformed variable, and the determinants of maps of several variables."""

import math

import numpy as np
import pytest
import torch
from scipy.integrate import dblquad, quad
from scipy.stats import kstest
from torch.autograd.functional import jacobian
from torch.distributions import (
    AbsTransform,
    AffineTransform,
    ComposeTransform,
    CorrCholeskyTransform,
    ExpTransform,
    Gamma,
    LowerCholeskyTransform,
    MultivariateNormal,
    Normal,
    PowerTransform,
    SigmoidTransform,
    SoftplusTransform,
    StickBreakingTransform,
    TanhTransform,
    Transform,
    Uniform,
    constraints,
)
from torch.func import vmap

from likely.core.errors import DataError
from likely.probability import change_of_variables, log_det

FLIP = AffineTransform(1.0, -2.0)


@pytest.mark.parametrize(
    ("base", "transform", "low", "high"),
    [
        (Normal(0.0, 1.0), AffineTransform(3.0, -2.0), -math.inf, math.inf),
        (Normal(0.0, 1.0), ExpTransform(), 0.0, math.inf),
        (Normal(0.5, 2.0), SigmoidTransform(), 0.0, 1.0),
        (Normal(0.0, 1.0), TanhTransform(), -1.0, 1.0),
        (Normal(0.0, 1.0), SoftplusTransform(), 0.0, math.inf),
        (Gamma(2.0, 1.0), PowerTransform(torch.tensor(0.5)), 0.0, math.inf),
        (Uniform(0.0, 1.0), ComposeTransform([SigmoidTransform().inv, FLIP]), -math.inf, math.inf),
    ],
)
def test_the_density_of_a_transformed_variable_integrates_to_one(base, transform, low, high):
    distribution = change_of_variables(base, transform)

    def density(y):
        return float(distribution.log_prob(torch.tensor(y, dtype=torch.float64)).exp())

    middle = float(transform(base.mean))
    total = sum(quad(density, *ends, limit=200)[0] for ends in ((low, middle), (middle, high)))
    assert total == pytest.approx(1.0, abs=1e-6)


class Shear(Transform):
    """(x, y) → (x + sin y, y + (x + sin y)³): a map of the plane that knows its inverse but no determinant."""

    domain = codomain = constraints.real_vector
    bijective = True

    def _call(self, x):
        first = x[..., 0] + x[..., 1].sin()
        return torch.stack([first, x[..., 1] + first**3], -1)

    def _inverse(self, y):
        second = y[..., 1] - y[..., 0] ** 3
        return torch.stack([y[..., 0] - second.sin(), second], -1)


def bend(x):
    """x → A x + tanh(A x)/2 for a fixed A: one-to-one, and its determinant changes from place to place."""
    moved = torch.stack([x[0] + 0.5 * x[1], 2.0 * x[1]])
    return moved + 0.5 * moved.tanh()


def unbend(y):
    moved = y
    for _ in range(20):  # z + tanh(z)/2 = y by Newton
        moved = moved - (moved + 0.5 * moved.tanh() - y) / (1.5 - 0.5 * moved.tanh() ** 2)
    second = moved[1] / 2
    return torch.stack([moved[0] - 0.5 * second, second])


def test_the_density_of_a_bent_plane_is_that_of_its_draws(seed):
    """The fraction of 200,000 draws in a square is within 5 standard errors: a false alarm in 1 of 10⁶ seeds."""
    torch.manual_seed(seed)
    base = MultivariateNormal(torch.zeros(2, dtype=torch.float64), torch.eye(2, dtype=torch.float64))
    bent = change_of_variables(base, bend, unbend)
    grid = torch.linspace(-15, 15, 301, dtype=torch.float64)
    places = torch.cartesian_prod(grid, grid)
    total = bent.log_prob(places).exp().sum() * (grid[1] - grid[0]) ** 2
    assert float(total) == pytest.approx(1.0, abs=1e-6)
    inside = (places.abs() < 1.51).all(1)
    share = bent.log_prob(places[inside]).exp().sum() * (grid[1] - grid[0]) ** 2
    draws = bent.sample((200_000,))
    measured = (draws.abs() < 1.55).all(1).double().mean()  # cells of the grid reach half a step beyond their centres
    assert float(measured) == pytest.approx(float(share), abs=5 * math.sqrt(0.25 / 200_000))


def test_a_map_and_its_inverse_cancel():
    base = MultivariateNormal(torch.zeros(2, dtype=torch.float64), torch.eye(2, dtype=torch.float64))
    x = base.sample((50,))
    torch.testing.assert_close(log_det(bend, x), -log_det(unbend, vmap(bend)(x)), rtol=1e-8, atol=1e-8)
    bent = change_of_variables(base, bend, unbend)
    torch.testing.assert_close(bent.log_prob(vmap(bend)(x)), base.log_prob(x) - log_det(bend, x), rtol=1e-8, atol=1e-8)


def test_a_linear_map_of_a_normal_is_the_normal_with_that_covariance():
    matrix = torch.tensor([[2.0, 0.0, 0.0], [0.5, 1.0, 0.0], [-1.0, 3.0, 0.25]], dtype=torch.float64)
    base = MultivariateNormal(torch.zeros(3, dtype=torch.float64), torch.eye(3, dtype=torch.float64))
    moved = change_of_variables(base, lambda x: matrix @ x, lambda y: torch.linalg.solve(matrix, y[:, None])[:, 0])
    closed = MultivariateNormal(torch.zeros(3, dtype=torch.float64), scale_tril=matrix)
    y = closed.sample((20,))
    torch.testing.assert_close(moved.log_prob(y), closed.log_prob(y), rtol=1e-10, atol=1e-10)
    assert float(log_det(lambda x: matrix @ x, y[0])) == pytest.approx(math.log(2 * 1 * 0.25))


def square(transform, x):
    """The Jacobian at one x, without the coordinates of the result that follow from the others."""
    size = len(x)

    def free(one):
        moved = transform(one)
        return moved if moved.shape == one.shape else moved.reshape(-1)[:size]

    return jacobian(free, x)


@pytest.mark.parametrize(
    "transform",
    [
        AffineTransform(1.0, -3.0),
        AffineTransform(1.0, torch.tensor([1.0, -3.0, 0.5], dtype=torch.float64), event_dim=1),
        ExpTransform(),
        SigmoidTransform(),
        SoftplusTransform(),
        StickBreakingTransform(),
        ComposeTransform([AffineTransform(0.3, 0.5), ExpTransform()]),
        ComposeTransform([AffineTransform(0.3, 0.5, event_dim=1), StickBreakingTransform()]),
        Shear(),
    ],
    ids=lambda transform: type(transform).__name__,
)
def test_log_det_is_that_of_the_jacobian(transform):
    size = 2 if isinstance(transform, Shear) else 3
    x = torch.randn(20, size, dtype=torch.float64)
    expected = torch.stack([torch.linalg.slogdet(square(transform, one)).logabsdet for one in x])
    torch.testing.assert_close(log_det(transform, x), expected, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(log_det(transform, x[0]), expected[0], rtol=1e-9, atol=1e-9)


def test_correlations_of_three_have_the_determinant_of_free_entries():
    """Three numbers make a factor of three unit rows; its entries below the diagonal are free."""
    transform = CorrCholeskyTransform()
    x = torch.randn(10, 3, dtype=torch.float64)

    def free(one):
        return transform(one)[[1, 2, 2], [0, 0, 1]]

    expected = torch.stack([torch.linalg.slogdet(jacobian(free, one)).logabsdet for one in x])
    torch.testing.assert_close(log_det(transform, x), expected, rtol=1e-9, atol=1e-9)


def test_stick_breaking_carries_a_density_to_the_simplex():
    """On {y₁, y₂ ≥ 0, y₁ + y₂ ≤ 1} it integrates to 1."""
    base = MultivariateNormal(torch.zeros(2, dtype=torch.float64), torch.eye(2, dtype=torch.float64))
    broken = change_of_variables(base, StickBreakingTransform())

    def density(b, a):
        return float(broken.log_prob(torch.tensor([a, b, 1 - a - b], dtype=torch.float64)).exp())

    tiny = 1e-7
    total, _ = dblquad(density, tiny, 1 - 3 * tiny, lambda a: tiny, lambda a: 1 - a - tiny, epsabs=1e-4)
    assert total == pytest.approx(1.0, abs=1e-3)


def test_a_uniform_through_a_quantile_function_has_its_distribution(seed):
    """By Kolmogorov and Smirnov, 5,000 draws: a false alarm in 1 of 10⁶ seeds."""
    torch.manual_seed(seed)
    logistic = change_of_variables(Uniform(0.0, 1.0), SigmoidTransform().inv)
    draws = logistic.sample((5000,)).numpy()
    assert kstest(draws, "logistic").pvalue > 1e-6
    places = np.linspace(-5, 5, 11)
    expected = -places - 2 * np.log1p(np.exp(-places))
    np.testing.assert_allclose(logistic.log_prob(torch.tensor(places)).numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: change_of_variables(Normal(0.0, 1.0), AbsTransform()), "AbsTransform is not one-to-one"),
        (lambda: change_of_variables(Normal(0.0, 1.0), torch.exp), "a function together with its inverse"),
        (lambda: change_of_variables(Normal(0.0, 1.0), torch.exp, torch.log), r"one draw of it has shape \(\)"),
        (lambda: log_det(lambda x: x[:1], torch.zeros(2)), r"takes 2 numbers and gives a result of shape \(1,\)"),
        (lambda: log_det(torch.exp, torch.tensor(1.0)), "x must hold vectors"),
        (lambda: log_det(LowerCholeskyTransform(), torch.eye(2)), "LowerCholeskyTransform maps matrices"),
    ],
)
def test_maps_that_cannot_carry_a_density_are_refused(call, message):
    with pytest.raises(DataError, match=message):
        call()
