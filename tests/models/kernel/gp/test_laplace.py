"""Laplace's approximation: its gradient for every likelihood, its two forms of curvature, and what the mode is."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from likely.core.spec import registered
from likely.kernels import RBF, White
from likely.kernels.gram import gram
from likely.likelihoods import Bernoulli, Categorical, Likelihood, Poisson
from likely.models.kernel.gp.curvature import Blocks, Softmax, curvature_of
from likely.models.kernel.gp.hyperparameters import free, read
from likely.models.kernel.gp.laplace import Laplace

RNG = np.random.default_rng(0)
ROWS = 18
X = torch.from_numpy(RNG.normal(size=(ROWS, 2)))
WEIGHT = torch.from_numpy(RNG.uniform(0.5, 2.0, size=ROWS))


KERNEL = 1.0 * RBF(1.5) + White(0.1)


def problem_of(likelihood, kernel=KERNEL, weight=WEIGHT, constant=True):
    target = likelihood.example_target()
    with torch.random.fork_rng():
        torch.manual_seed(1)
        eta = 0.5 * torch.randn(ROWS, likelihood.size(target), dtype=torch.float64)
        y = likelihood.distribution(eta).sample().double()
    if likelihood.labels:
        classes = target.classes or 2
        y[: 2 * classes] = torch.arange(2 * classes).to(y) % classes
        if "classes" in likelihood.get_params():
            likelihood = likelihood.replace(classes=classes)
    else:
        target = likelihood.target(y)
    offset, _ = likelihood.baseline(y, weight)
    latent = likelihood.size(target) - likelihood.shared(target)
    module = kernel.build(X).double()
    return Laplace(module, likelihood, X, y, weight, constant, offset, latent)


@pytest.mark.parametrize("name", sorted(set(registered(Likelihood)) - {"Laplace", "NormalMixture"}))  # many modes
def test_the_gradient_of_the_evidence_is_that_of_differences(name):
    """For every smooth likelihood, with means, weights and shared numbers."""
    problem = problem_of(registered(Likelihood)[name].example())
    theta = torch.cat([read(free(problem.kernel)), problem.start()[0] + 0.1])
    _, gradient = problem.value_and_grad(theta)
    steps = 1e-4 * torch.eye(len(theta), dtype=torch.float64)
    expected = [(problem.value_and_grad(theta + s)[0] - problem.value_and_grad(theta - s)[0]) / 2e-4 for s in steps]
    np.testing.assert_allclose(gradient, expected, atol=1e-6)


@pytest.mark.parametrize("likelihood", [Bernoulli(), Poisson(), Categorical()], ids=repr)
def test_the_mode_is_where_a_plain_optimiser_finds_it(likelihood):
    problem = problem_of(likelihood, kernel=RBF(0.8) + White(0.05), constant=False)
    posterior = problem.solve(torch.empty(0, dtype=torch.float64))
    precision = torch.linalg.inv(gram(problem.kernel, X)).numpy()

    def cost(flat):
        latent = torch.from_numpy(flat.reshape(ROWS, -1))
        log_prob = (WEIGHT * problem.likelihood.log_prob(latent, problem.y)).sum()
        score = WEIGHT.unsqueeze(-1) * problem.likelihood.smooth_value_and_grad(latent, problem.y)[1]
        pulled = precision @ latent.numpy()
        return 0.5 * (latent.numpy() * pulled).sum() - float(log_prob), (pulled - score.numpy()).ravel()

    best = minimize(cost, np.zeros(ROWS * problem.latent), jac=True, method="BFGS", options={"gtol": 1e-9})
    np.testing.assert_allclose(posterior.here.latent.numpy().ravel(), best.x, atol=1e-5)
    assert posterior.converged


@pytest.mark.parametrize("size", [1.0, 60.0])
def test_the_mode_is_found_from_a_start_that_is_absurd(size):
    """Rates of e⁶⁰ may be the last kernel's mode under this one: Newton's steps do not lead back from there."""
    problem = problem_of(Poisson(), kernel=RBF(0.8) + White(0.05), constant=False)
    nothing = torch.empty(0, dtype=torch.float64)
    plain = problem.solve(nothing)
    functions = size * (-1.0) ** torch.arange(ROWS, dtype=torch.float64).unsqueeze(-1)
    problem.warm.clear()
    posterior = problem.solve(nothing, torch.linalg.solve(plain.matrix, functions))
    assert posterior.converged
    assert posterior.log_evidence == pytest.approx(plain.log_evidence, abs=1e-8)
    np.testing.assert_allclose(posterior.weights, plain.weights, atol=1e-8)


def test_softmax_curvature_is_that_of_any_information():
    matrix = RBF(0.9).matrix(X) + 0.01 * torch.eye(ROWS, dtype=torch.float64)
    probability = torch.softmax(torch.from_numpy(RNG.normal(size=(ROWS, 3))), -1)
    outer = probability.unsqueeze(-1) * probability.unsqueeze(-2)
    information = WEIGHT.reshape(-1, 1, 1) * (torch.diag_embed(probability) - outer)
    quick, plain = curvature_of(matrix, information, probability, WEIGHT), Blocks.of(matrix, information)
    assert isinstance(quick, Softmax)
    assert quick.log_det == pytest.approx(plain.log_det, abs=1e-10)
    values, cross = (torch.from_numpy(RNG.normal(size=(ROWS, columns))) for columns in (3, 5))
    np.testing.assert_allclose(quick.apply(values), plain.apply(values), atol=1e-10)
    np.testing.assert_allclose(quick.blocks(cross), plain.blocks(cross), atol=1e-10)
    np.testing.assert_allclose(quick.joint(cross), plain.joint(cross), atol=1e-10)
    np.testing.assert_allclose(quick.trace(), plain.trace(), atol=1e-10)


@pytest.mark.parametrize("functions", [1, 3])
def test_curvature_is_the_inverse_that_it_stands_for(functions):
    """M = (K ⊗ I + W⁻¹)⁻¹, by inverting large matrices."""
    matrix = RBF(0.9).matrix(X)
    root = torch.from_numpy(RNG.normal(size=(ROWS, functions, functions)))
    information = root @ root.mT + 0.1 * torch.eye(functions, dtype=torch.float64)
    curvature = Blocks.of(matrix, information)
    size = ROWS * functions
    whole = torch.block_diag(*information)
    wide = torch.kron(matrix, torch.eye(functions, dtype=torch.float64))
    inverse = torch.linalg.inv(wide + torch.linalg.inv(whole))
    assert curvature.log_det == pytest.approx(
        float(torch.linalg.slogdet(torch.eye(size, dtype=torch.float64) + wide @ whole)[1]), abs=1e-8
    )
    values = torch.from_numpy(RNG.normal(size=(ROWS, functions)))
    np.testing.assert_allclose(curvature.apply(values).reshape(-1), inverse @ values.reshape(-1), atol=1e-7)
    cross = torch.from_numpy(RNG.normal(size=(ROWS, 4)))
    lifted = torch.kron(cross, torch.eye(functions, dtype=torch.float64))
    np.testing.assert_allclose(curvature.joint(cross), lifted.mT @ inverse @ lifted, atol=1e-7)
    blocks = curvature.joint(cross).reshape(4, functions, 4, functions)
    np.testing.assert_allclose(curvature.blocks(cross), torch.stack([blocks[i, :, i] for i in range(4)]), atol=1e-9)
    tiles = inverse.reshape(ROWS, functions, ROWS, functions)
    np.testing.assert_allclose(curvature.trace(), tiles.diagonal(dim1=1, dim2=3).sum(-1), atol=1e-7)
