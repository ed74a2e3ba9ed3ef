"""Wide networks train as their tangent kernel says."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.linalg import expm
from torch import nn

from likely.core.errors import DataError
from likely.kernels.tangent import tangent_kernel
from likely.theory import gradient_flow, kernel_drift, linearise


def wide(width, seed=0):
    """One hidden layer in the parametrisation whose kernel has a limit: √(1/width) outside."""
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, 1, bias=False)).double()
    with torch.no_grad():
        net[0].weight.normal_()
        net[0].bias.normal_()
        net[2].weight.normal_(std=width**-0.5)
    return net


def trained(net, X, y, rate, steps):
    for _ in range(steps):
        loss = 0.5 * (net(X)[:, 0] - y).square().sum()
        gradients = torch.autograd.grad(loss, list(net.parameters()))
        with torch.no_grad():
            for value, slope in zip(net.parameters(), gradients, strict=True):
                value -= rate * slope
    return net


@pytest.fixture
def data():
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(12, 2, dtype=torch.float64, generator=generator)
    return X, X[:, 0] * X[:, 1], torch.randn(5, 2, dtype=torch.float64, generator=generator)


def test_flow_is_the_matrix_exponential():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(5, 5))
    K, y, start, cross = A @ A.T, rng.normal(size=5), rng.normal(size=5), rng.normal(size=(3, 5))
    decay = expm(-0.3 * K)
    np.testing.assert_allclose(gradient_flow(K, y, 0.3, start), y + decay @ (start - y), atol=1e-10)
    expected = cross @ np.linalg.solve(K, (np.eye(5) - decay) @ (y - start))
    np.testing.assert_allclose(gradient_flow(K, y, 0.3, start, cross), expected, atol=1e-8)
    np.testing.assert_allclose(gradient_flow(K, y, np.inf, start), y, atol=1e-8)
    np.testing.assert_allclose(gradient_flow(K, y, np.inf, None, cross), cross @ np.linalg.solve(K, y), atol=1e-6)
    np.testing.assert_allclose(gradient_flow(K, y, 0.0, start), start, atol=1e-12)


def test_training_a_wide_network_follows_its_kernel(data):
    X, y, new = data
    gaps = []
    for width in (64, 4096):
        net = wide(width)
        K, cross = tangent_kernel(net, X).numpy(), tangent_kernel(net, new, X).numpy()
        start, start_new = (net(rows)[:, 0].detach().numpy() for rows in (X, new))
        rate, steps = 0.02 / np.linalg.eigvalsh(K)[-1], 3000
        trained(net, X, y, rate, steps)
        expected = gradient_flow(K, y.numpy(), rate * steps, start)
        elsewhere = gradient_flow(K, y.numpy(), rate * steps, start, cross, start_new)
        reached, reached_new = (net(rows)[:, 0].detach().numpy() for rows in (X, new))
        gaps.append(max(abs(reached - expected).max(), abs(reached_new - elsewhere).max()))
    assert gaps[1] < 0.05
    assert gaps[1] < 0.5 * gaps[0]


def test_the_kernel_moves_less_the_wider_the_network(data):
    X, y, _ = data
    drifts = []
    for width in (32, 512, 8192):
        before, after = wide(width), wide(width)
        rate = 0.5 / float(torch.linalg.eigvalsh(tangent_kernel(before, X))[-1])
        drifts.append(kernel_drift(before, trained(after, X, y, rate, 100), X))
    assert drifts[0] > 2 * drifts[1] > 4 * drifts[2] > 0


def test_a_linearised_network_has_the_networks_jacobian_everywhere(data):
    X, y, _ = data
    net = wide(16)
    line = linearise(net)
    K = tangent_kernel(net, X)
    torch.testing.assert_close(line(X), net(X))
    rate, steps = 0.1 / float(torch.linalg.eigvalsh(K)[-1]), 200
    start = net(X)[:, 0].detach().numpy()
    trained(line, X, y, rate, steps)
    # gradient descent on a linear model, exactly: f ← f − rate·K(f − y)
    f = start
    for _ in range(steps):
        f = f - rate * K.numpy() @ (f - y.numpy())
    np.testing.assert_allclose(line(X)[:, 0].detach().numpy(), f, atol=1e-10)


def test_what_is_no_kernel_is_refused():
    with pytest.raises(DataError, match="square matrix with a row for each target"):
        gradient_flow(np.eye(2), [1.0], 1.0)
    with pytest.raises(DataError, match="has the eigenvalue -1"):
        gradient_flow([[-1.0]], [1.0], 1.0)
    with pytest.raises(DataError, match="time=-1"):
        gradient_flow([[1.0]], [1.0], -1)
