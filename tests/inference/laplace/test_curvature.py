"""The curvature of a linear model is XᵀSX + P in closed form; of a network it is J Sᵀ J of Jacobians written out."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from likely import Classifier, Regressor, priors
from likely.inference.laplace.curvature import (
    full_blocks,
    independent_blocks,
    kronecker_blocks,
    prior_curvature,
)
from likely.likelihoods import Normal, Poisson
from likely.networks import MLP

RNG = np.random.default_rng(0)
X, RATE = RNG.normal(size=(25, 2)), 4.0
PRIOR = priors.Normal(RATE**-0.5, biases=priors.Normal(RATE**-0.5))
WIDE = np.column_stack([X, np.ones(25)])


@pytest.fixture
def pieces(problem_of):
    def pieces(model, y, **options):
        problem = problem_of(model.set_params(prior=PRIOR, random_state=0), X, y, **options)
        module = problem.module().eval()
        names = tuple(name for name, _ in module.named_parameters())
        return problem, module, prior_curvature(problem, module, names)

    return pieces


def covariance(blocks, module):
    """Σ of all parameters, from the roots."""
    named = dict(module.named_parameters())
    size = sum(value.numel() for value in named.values())
    eye = torch.eye(size, dtype=torch.float64)
    split = eye.split([value.numel() for value in named.values()], 1)
    rows = {n: part.reshape(size, *v.shape) for (n, v), part in zip(named.items(), split, strict=True)}
    roots = [block.times(rows) for block in blocks]
    return sum(root @ root.T for root in roots)


def test_the_full_curvature_of_linear_models(pieces):
    """Normal: X̃ᵀX̃/σ² + P; Poisson: X̃ᵀ diag(w exp η) X̃ + P."""
    problem, module, prior = pieces(Regressor(Normal(0.5)), X[:, 0])
    expected = np.linalg.inv(WIDE.T @ WIDE / 0.25 + RATE * np.eye(3))
    np.testing.assert_allclose(covariance(full_blocks(problem, module, prior), module), expected, rtol=1e-8)
    weight = RNG.random(25) + 0.5
    problem, module, prior = pieces(Regressor(Poisson()), RNG.poisson(2.0, 25), sample_weight=weight)
    mean = np.exp(module(torch.from_numpy(X)).detach().numpy()[:, 0])
    expected = np.linalg.inv(WIDE.T @ ((weight * mean)[:, None] * WIDE) + RATE * np.eye(3))
    np.testing.assert_allclose(covariance(full_blocks(problem, module, prior), module), expected, rtol=1e-8)


@pytest.mark.parametrize(
    "model", [Regressor(Normal(0.5), network=MLP((4,), "tanh")), Classifier(network=MLP((4,), "tanh"))]
)
def test_full_and_diagonal_curvature_of_networks(pieces, model):
    problem, module, prior = pieces(model, (X[:, 0] * X[:, 1] > 0).astype(float))
    x, parameters = torch.from_numpy(X), list(module.parameters())
    eta = module(x)[:, 0]
    rows = [torch.cat([g.flatten() for g in torch.autograd.grad(e, parameters, retain_graph=True)]) for e in eta]
    J, p = torch.stack(rows), torch.sigmoid(eta.detach())
    information = p * (1 - p) if isinstance(model, Classifier) else torch.full((25,), 4.0, dtype=torch.float64)
    hessian = J.T @ (information[:, None] * J) + torch.diag(torch.cat([v.flatten() for v in prior.values()]))
    full, alone = full_blocks(problem, module, prior), independent_blocks(problem, module, prior)
    torch.testing.assert_close(covariance(full, module), torch.linalg.inv(hessian), rtol=1e-6, atol=1e-9)
    torch.testing.assert_close(covariance(alone, module), torch.diag(1 / hessian.diagonal()), rtol=1e-8, atol=1e-12)


def test_kronecker_factors_are_exact_for_one_linear_layer_of_normal_noise(pieces):
    """S is the same in all rows, so that Σ a aᵀ ⊗ S = A ⊗ G."""
    problem, module, prior = pieces(Regressor(Normal(0.5)), X[:, 0])
    ours = covariance(kronecker_blocks(problem, module, prior), module)
    np.testing.assert_allclose(ours, covariance(full_blocks(problem, module, prior), module), rtol=1e-8)


def test_the_curvature_of_a_prior_is_its_rate(pieces):
    _, _, prior = pieces(Regressor(Normal(0.5)), X[:, 0])
    for value in prior.values():
        torch.testing.assert_close(value, torch.full_like(value, RATE))
