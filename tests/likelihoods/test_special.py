from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import special as sp

from likely.likelihoods.special import bounded_exp, bounded_log, gamma_remainder, log_one_minus_exp, log_sigmoid


def test_gamma_remainder():
    z = torch.logspace(-8, 3, 400, dtype=torch.float64)
    expected = sp.gammaln(z.numpy()) - z.numpy() * np.log(z.numpy()) + z.numpy()
    np.testing.assert_allclose(gamma_remainder(z.log()).numpy(), expected, atol=2e-12)


def test_gamma_remainder_far_out():
    # log Γ(z) = z log z − z + ½ log(2π/z) + 1/12z − …
    log_z = torch.tensor([50.0, 500.0], dtype=torch.float64)
    torch.testing.assert_close(gamma_remainder(log_z), 0.5 * (np.log(2 * np.pi) - log_z))
    small = torch.tensor([-50.0, -500.0], dtype=torch.float64)
    torch.testing.assert_close(gamma_remainder(small), -small)


def test_derivatives_of_the_gamma_remainder():
    log_z = torch.linspace(-3, 6, 40, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(gamma_remainder(log_z).sum(), log_z, create_graph=True)
    z = log_z.detach().exp().numpy()
    np.testing.assert_allclose(slope.detach().numpy(), z * (sp.digamma(z) - np.log(z)), atol=1e-10)
    (curvature,) = torch.autograd.grad(slope.sum(), log_z)
    expected = z * (sp.digamma(z) - np.log(z)) + z * (z * sp.polygamma(1, z) - 1)
    np.testing.assert_allclose(curvature.numpy(), expected, atol=1e-8)


def test_log_one_minus_exp():
    log_x = torch.linspace(-20, 5, 200, dtype=torch.float64)
    expected = np.log(-np.expm1(-np.exp(log_x.numpy())))
    np.testing.assert_allclose(log_one_minus_exp(log_x).numpy(), expected, atol=1e-11)


def test_log_sigmoid():
    x = torch.linspace(-100, 100, 401, dtype=torch.float64)
    np.testing.assert_allclose(log_sigmoid(x).numpy(), sp.log_expit(x.numpy()), rtol=1e-14, atol=1e-17)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_bounds_are_exact_inside_and_finite_outside(dtype):
    x = torch.linspace(-30, 30, 61, dtype=dtype)
    torch.testing.assert_close(bounded_exp(x), x.exp())
    torch.testing.assert_close(bounded_log(x), x)
    far = torch.tensor([1e3, 1e6], dtype=dtype, requires_grad=True)
    (slope,) = torch.autograd.grad(bounded_exp(far).sum(), far)
    assert bool((slope.isfinite() & (slope > 0)).all())
    assert bool((-2 * bounded_log(-far)).exp().isfinite().all())
