"""Network kernels: closed forms against integrals, finite networks against their limits."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy import integrate
from torch import nn

from likely.core.errors import DataError, SpecError
from likely.kernels import NNGP, NTK
from likely.kernels.duals import dual, own_dual
from likely.kernels.tangent import tangent_kernel
from likely.networks import MLP, Linear
from likely.networks.layers.activation import activation


def rows(n=6, d=3, seed=0):
    return torch.randn(n, d, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def expected(name, q, p, k):
    """E[φ(u)φ(v)] and E[φ′(u)φ′(v)] by two-dimensional quadrature, with (u, v) = L z."""
    factor = np.linalg.cholesky([[q, k], [k, p]])

    def phi(value):
        point = torch.tensor(value, dtype=torch.float64, requires_grad=True)
        out = activation(name)(point)
        return out.item(), torch.autograd.grad(out, point)[0].item() if out.requires_grad else 0.0

    def value(b, a, which):
        u, v = factor @ [a, b]
        return phi(u)[which] * phi(v)[which] * np.exp(-0.5 * (a * a + b * b)) / (2 * np.pi)

    z, w = np.polynomial.hermite_e.hermegauss(61)
    w = w / w.sum()
    total = [0.0, 0.0]
    for a, wa in zip(z, w, strict=True):
        for b, wb in zip(z, w, strict=True):
            u, v = factor @ [a, b]
            (fu, du), (fv, dv) = phi(u), phi(v)
            total[0] += wa * wb * fu * fv
            total[1] += wa * wb * du * dv
    return total


@pytest.mark.parametrize("name", ["erf", "tanh", "gelu", "sin", "softplus"])
def test_duals_of_smooth_activations_are_integrals(name):
    q, p, k = 0.7, 1.3, 0.5
    value, derivative = dual(name, *(torch.tensor(v, dtype=torch.float64) for v in ([q], [p], [[k]])))
    np.testing.assert_allclose([value.item(), derivative().item()], expected(name, q, p, k), atol=1e-6)


@pytest.mark.parametrize("name", ["identity", "relu", "erf", "tanh", "gelu"])
def test_the_dual_of_a_variable_with_itself_is_the_diagonal(name):
    q = torch.tensor([0.3, 1.0, 2.5], dtype=torch.float64)
    whole, own = dual(name, q, q, (q.unsqueeze(-1) * q).sqrt()), own_dual(name, q)
    torch.testing.assert_close(own[0], whole[0].diagonal(), atol=1e-10, rtol=1e-8)
    torch.testing.assert_close(own[1](), whole[1]().diagonal(), atol=1e-6, rtol=1e-6)


def test_the_dual_of_relu_is_an_integral():
    q, p, k = 0.7, 1.3, -0.4
    factor = np.linalg.cholesky([[q, k], [k, p]])

    def density(b, a):
        return np.exp(-0.5 * (a * a + b * b)) / (2 * np.pi)

    def inside(b, a):
        u, v = factor @ [a, b]
        return max(u, 0) * max(v, 0) * density(b, a)

    integral = integrate.dblquad(inside, 0, 10, -10, 10, epsabs=1e-8)[0]  # u > 0 exactly where the first z is
    value, derivative = dual("relu", *(torch.tensor(v, dtype=torch.float64) for v in ([q], [p], [[k]])))
    assert value.item() == pytest.approx(integral, abs=1e-6)
    orthant = 0.25 + np.arcsin(k / np.sqrt(q * p)) / (2 * np.pi)
    assert derivative().item() == pytest.approx(orthant, abs=1e-12)


def test_a_network_without_hidden_layers_is_linear_regression():
    x = rows()
    torch.testing.assert_close(NNGP(MLP(()), weight_variance=1.0).matrix(x), x @ x.T / 3)
    torch.testing.assert_close(NTK(MLP(()), weight_variance=1.0, bias_variance=0.5).matrix(x), 0.5 + x @ x.T / 3)


@pytest.mark.parametrize("kernel", [NNGP, NTK])
@pytest.mark.parametrize("name", ["relu", "erf", "tanh"])
def test_limits_are_positive_and_their_diagonal_is_theirs(kernel, name):
    x = rows(20, 4)
    made = kernel(MLP((9, 9), activation=name), weight_variance=1.5, bias_variance=0.1)
    matrix = made.matrix(x)
    assert torch.linalg.eigvalsh(matrix)[0] > -1e-10
    torch.testing.assert_close(made.build(x).diagonal(x), matrix.diagonal(), atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(made.matrix(x[:3], x[5:]), matrix[:3, 5:], atol=1e-10, rtol=1e-10)


class Scaled(nn.Module):
    """A dense network in the parametrisation of the limit: standard normal weights, scaled where they are used."""

    def __init__(self, d, width, depth, name, weight_variance, bias_variance, seed):
        super().__init__()
        torch.manual_seed(seed)
        sizes = [d, *[width] * depth, 1]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(sizes))
        for layer in self.layers:
            nn.init.normal_(layer.weight, std=(weight_variance / layer.in_features) ** 0.5)
            nn.init.normal_(layer.bias, std=bias_variance**0.5)
        self.phi = activation(name)
        self.factors = {
            f"layers.{i}.{kind}": weight_variance / layer.in_features if kind == "weight" else bias_variance
            for i, layer in enumerate(self.layers)
            for kind in ("weight", "bias")
        }
        self.double()

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = self.phi(layer(x))
        return self.layers[-1](x)

    def tangent(self, x):
        return tangent_kernel(self, x, scale=lambda name, value: self.factors[name])


@pytest.mark.parametrize("name", ["relu", "erf"])
def test_the_tangent_kernel_tends_to_its_limit_as_one_over_width(name):
    """Its mean square distance from the limit falls as 1/width: by 16 from 64 to 1024 (here at least by 8)."""
    x = rows(5, 3)
    limit = NTK(MLP((1, 1), activation=name), weight_variance=1.6, bias_variance=0.3).matrix(x)
    errors = []
    for width in (64, 1024):
        nets = [Scaled(3, width, 2, name, 1.6, 0.3, seed) for seed in range(24)]
        errors.append(float(torch.stack([(net.tangent(x) - limit).square().mean() for net in nets]).mean()))
    assert errors[0] / errors[1] > 8
    assert errors[1] ** 0.5 < 0.1 * float(limit.abs().mean())


def test_wide_networks_are_gaussian_with_the_limits_covariance(seed):
    """Of 1,500 networks: ten covariances within 6 of their standard errors √((KᵢᵢKⱼⱼ + Kᵢⱼ²)/1500), and the kurtosis of
    6,000 numbers, 3 but for about 1/300, within 6 of √(96/6000): a false alarm in 1 of 10⁶ seeds.
    """
    x = rows(4, 3)
    limit = NNGP(MLP((1, 1), activation="erf"), weight_variance=1.6, bias_variance=0.3).matrix(x)
    draws = torch.stack([Scaled(3, 300, 2, "erf", 1.6, 0.3, 1500 * seed + k)(x)[:, 0].detach() for k in range(1500)])
    error = ((torch.outer(limit.diagonal(), limit.diagonal()) + limit.square()) / 1500).sqrt()
    assert ((torch.cov(draws.T) - limit).abs() < 6 * error).all()
    white = torch.linalg.solve_triangular(torch.linalg.cholesky(limit), draws.T, upper=False)
    assert abs(float(white.pow(4).mean()) - 3) < 6 * (96 / 6000) ** 0.5


def test_both_ways_to_the_tangent_kernel_agree():
    """The short way of linear layers, and Jacobians of any layer; a layer norm forces the second."""
    x = rows(7, 3)
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2)).double()
    direct = tangent_kernel(net, x)
    parameters = list(net.parameters())
    jacobian = torch.stack(
        [
            torch.cat([g.flatten() for g in torch.autograd.grad(net(row[None])[0, out], parameters)])
            for row in x
            for out in range(2)
        ]
    ).reshape(7, 2, -1)
    torch.testing.assert_close(direct, torch.einsum("nkp,mkp->nm", jacobian, jacobian) / 2)
    other = nn.Sequential(net, nn.LayerNorm(2, elementwise_affine=True).double())
    jacobian = torch.stack(
        [
            torch.cat([g.flatten() for g in torch.autograd.grad(other(row[None])[0, out], list(other.parameters()))])
            for row in x
            for out in range(2)
        ]
    ).reshape(7, 2, -1)
    torch.testing.assert_close(tangent_kernel(other, x), torch.einsum("nkp,mkp->nm", jacobian, jacobian) / 2)
    torch.testing.assert_close(tangent_kernel(other, x[:2], x), tangent_kernel(other, x)[:2])


def test_blocks_do_not_change_the_answer(monkeypatch):
    x = rows(7, 3)
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Linear(4, 1)).double()
    whole = tangent_kernel(net, x)
    monkeypatch.setattr("likely.networks.jacobian.BLOCK", 60)
    torch.testing.assert_close(tangent_kernel(net, x), whole)


def test_finite_kernels_are_those_of_the_network_built_from_the_seed():
    x = rows(5, 3)
    for kernel in (NTK(MLP((6,)), width="finite", random_state=3), NNGP(MLP((6,)), width="finite", draws=50)):
        matrix = kernel.matrix(x)
        torch.testing.assert_close(matrix, matrix.T)
        torch.testing.assert_close(kernel.matrix(x), matrix)
        torch.testing.assert_close(kernel.build(x).double().diagonal(x), matrix.diagonal())
        assert torch.linalg.eigvalsh(matrix)[0] > -1e-10


@pytest.mark.parametrize("variances", [{}, {"weight_variance": 1.6, "bias_variance": 0.3}], ids=str)
@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_finite_tangent_kernels_tend_to_their_own_limit(activation, variances):
    """The mean square distance falls as 1/width: by 16 from 64 to 1024 (by 11 to 28 over 24 seeds; at least by 5)."""
    x = rows(5, 3)
    limit = NTK(MLP((1, 1), activation=activation), **variances).matrix(x)
    errors = []
    for width in (64, 1024):
        network = MLP((width, width), activation=activation)
        kernels = [NTK(network, width="finite", random_state=seed, **variances) for seed in range(24)]
        errors.append(float(torch.stack([(kernel.matrix(x) - limit).square().mean() for kernel in kernels]).mean()))
    assert errors[0] / errors[1] > 5
    assert errors[1] < 0.15**2 * float(limit.square().mean())


@pytest.mark.parametrize("bias", [True, False])
def test_finite_network_gaussian_processes_tend_to_their_own_limit(bias, seed):
    """The average over d networks has the standard error √((KᵢᵢKⱼⱼ + Kᵢⱼ²)/d) at each entry: 6 of them are allowed.

    A false alarm has a probability below 1e-6; the bias of 300 units is far smaller than a standard error.
    """
    x, draws = rows(4, 3), 1000
    variances = {"weight_variance": 1.6, "bias_variance": 0.3}
    limit = NNGP(MLP((1,), activation="tanh", bias=bias), **variances).matrix(x)
    network = MLP((300,), activation="tanh", bias=bias)
    average = NNGP(network, width="finite", draws=draws, random_state=seed, **variances).matrix(x)
    error = ((torch.outer(limit.diagonal(), limit.diagonal()) + limit.square()) / draws).sqrt()
    assert ((average - limit).abs() < 6 * error).all()


def test_networks_without_a_kernel_are_refused():
    with pytest.raises(DataError, match="BatchNorm makes the output for a row depend on other rows"):
        NTK(MLP((4,), norm="batch"), width="finite").matrix(rows())
    with pytest.raises(SpecError, match=r"and MLP.* has norm; use width="):
        NTK(MLP((4,), norm="layer"))
    with pytest.raises(SpecError, match="known for plain dense networks"):
        NNGP(Linear())
    with pytest.raises(SpecError, match="weight_variance must be None or a positive number"):
        NTK(MLP((4,)), weight_variance=0.0)


def test_neighbouring_seeds_share_no_network():
    x = torch.ones(1, 3, dtype=torch.float64)
    first, second = (NNGP(MLP((4,)), "finite", draws=10, random_state=seed).build(x).networks for seed in (0, 1))
    weights = [{next(network.parameters())[0, 0].item() for network in networks} for networks in (first, second)]
    assert len(weights[0]) == len(weights[1]) == 10
    assert weights[0].isdisjoint(weights[1])
