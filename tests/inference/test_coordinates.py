"""Coordinates θ = centre + Wφ: points, gradients and volumes change together, whatever W is."""

from __future__ import annotations

import pytest
import torch

from likely.inference.coordinates import CoordinateDensity, Coordinates


class Quartic:
    """log p = −Σ θ⁴/4."""

    def __call__(self, theta):
        return -0.25 * theta.pow(4).sum(1)

    def value_and_grad(self, theta):
        return self(theta), -theta.pow(3)


FACTORS = {
    "identity": None,
    "diagonal": torch.tensor([2.0, -0.5, 3.0], dtype=torch.float64),
    "dense": torch.tensor([[1.0, 2.0, 0.0], [0.0, 1.0, -1.0], [3.0, 0.0, 1.0]], dtype=torch.float64),
    "narrow": torch.tensor([[1.0, 2.0], [0.0, 1.0], [3.0, 0.0]], dtype=torch.float64),
}


@pytest.mark.parametrize("name", FACTORS)
def test_the_gradient_is_that_of_the_moved_density(name):
    """d/dφ log p(θ(φ)) = Wᵀg."""
    torch.manual_seed(0)
    made = Coordinates(torch.arange(3.0, dtype=torch.float64), FACTORS[name])
    phi = torch.randn(4, made.size, dtype=torch.float64).requires_grad_()
    density = CoordinateDensity(Quartic(), made)
    value = density(phi)
    expected = torch.autograd.grad(value.sum(), phi)[0]
    height, gradient = density.value_and_grad(phi.detach())
    torch.testing.assert_close(height, value.detach())
    torch.testing.assert_close(gradient, expected)
    torch.testing.assert_close(made.point(phi), made.centre + made.spread(phi))


@pytest.mark.parametrize("name", ["identity", "diagonal", "dense"])
def test_the_volume_is_that_of_the_jacobian(name):
    made = Coordinates(torch.zeros(3, dtype=torch.float64), FACTORS[name])
    jacobian = torch.autograd.functional.jacobian(
        lambda phi: made.point(phi.unsqueeze(0))[0], torch.zeros(3, dtype=torch.float64)
    )
    torch.testing.assert_close(made.log_det(), jacobian.det().abs().log())


def test_what_is_not_a_number_has_no_mass():
    density = CoordinateDensity(Quartic(), Coordinates(torch.zeros(1)))
    assert density(torch.tensor([[float("nan")], [0.0]])).tolist() == [-torch.inf, 0.0]
