"""Slopes of the evidence against differences, the kernel matrix in blocks, factors of singular matrices."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import likely.kernels.gram as gram_file
from likely.core.spec import registered
from likely.kernels import RBF, Constant, Deep, Kernel, Linear, Matern, Periodic, White
from likely.kernels.gram import gram, gram_gradient
from likely.models.kernel.gp.hyperparameters import free, read
from likely.models.kernel.gp.regression import Regression
from likely.networks import MLP

RNG = np.random.default_rng(0)
X = torch.from_numpy(RNG.normal(size=(24, 2)))
Y = torch.from_numpy(RNG.normal(size=24))
WEIGHT = torch.from_numpy(RNG.uniform(0.5, 2.0, size=24))

KERNELS = {
    "ard": 2.0 * RBF(1.3, ard=True) + Constant(0.3),
    "rough": Matern(smoothness=0.5) * Linear(),
    "periodic": White(0.3) + Periodic() * RBF(2.0),
    "deep": Deep(MLP((3,), activation="tanh"), 1.0 * RBF()),
} | {name: kernel.example() for name, kernel in registered(Kernel).items() if name not in ("NTK", "NNGP")}


def differences(function, theta, width=1e-5):
    steps = width * torch.eye(len(theta), dtype=torch.float64)
    return np.array([(function(theta + step)[0] - function(theta - step)[0]) / (2 * width) for step in steps])


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("constant", [True, False])
def test_the_gradient_of_the_evidence_is_that_of_differences(name, constant):
    module = KERNELS[name].build(X).double()
    regression = Regression(module, X, Y, WEIGHT, None, constant)
    theta = torch.cat([read(free(module)), torch.tensor([-0.3], dtype=torch.float64)])
    _, gradient = regression.value_and_grad(theta)
    expected = differences(regression.value_and_grad, theta)
    np.testing.assert_allclose(gradient, expected, atol=2e-7 * max(1.0, np.abs(expected).max()))


@pytest.mark.parametrize("name", ["ard", "periodic", "deep"])
def test_blocks_make_the_whole_matrix_and_its_gradient(name, monkeypatch):
    module = KERNELS[name].build(X).double()
    weight = torch.from_numpy(RNG.normal(size=(24, 24)))
    weight = weight + weight.mT
    parameters = free(module)
    whole = torch.autograd.grad((module(X) * weight).sum(), parameters)
    for rows in (5, 24, 100):
        monkeypatch.setattr(gram_file, "BLOCK", rows)
        np.testing.assert_allclose(gram(module, X), module(X).detach(), atol=1e-13)
        for own, other in zip(gram_gradient(module, X, weight, parameters), whole, strict=True):
            np.testing.assert_allclose(own, other, atol=1e-11)


def test_a_kernel_that_learns_nothing_has_no_gradient():
    module = RBF(learn=False).build(X).double()
    value, gradient = Regression(module, X, Y, WEIGHT, 0.5, True).value_and_grad(torch.empty(0, dtype=torch.float64))
    assert np.isfinite(value)
    assert len(gradient) == 0
