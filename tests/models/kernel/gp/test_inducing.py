"""Titsias's bound: below the evidence, equal to it where the inducing points are the rows, with the right gradient."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from likely.kernels import RBF, Matern
from likely.likelihoods import Normal
from likely.models.kernel.gaussian_process import GaussianProcess
from likely.models.kernel.gp.hyperparameters import free, read
from likely.models.kernel.gp.inducing import InducingRegression
from likely.models.kernel.gp.regression import Regression
from likely.models.kernel.gp.selection import choose_inducing

RNG = np.random.default_rng(0)
X = torch.from_numpy(RNG.normal(size=(60, 2)))
Y = torch.sin(2 * X[:, 0]) + 0.2 * torch.from_numpy(RNG.normal(size=60))
WEIGHT = torch.from_numpy(RNG.uniform(0.5, 2.0, size=60))
NEW = torch.from_numpy(RNG.normal(size=(8, 2)))


def both(kernel, points, constant=True):
    module = kernel.build(X).double()
    exact = Regression(module, X, Y, WEIGHT, None, constant)
    return exact, InducingRegression(exact, points), torch.cat([read(free(module)), torch.tensor([-1.0]).double()])


@pytest.mark.parametrize("kernel", [1.0 * RBF(0.8), Matern(0.7, smoothness=1.5)], ids=repr)
def test_the_bound_rises_to_the_evidence_as_inducing_points_are_added(kernel):
    evidence = both(kernel, X)[0].value_and_grad(both(kernel, X)[2])[0]
    bounds = []
    for count in (3, 10, 25, 60):
        _, bound, theta = both(kernel, X[:count])
        bounds.append(bound.value_and_grad(theta)[0])
    assert (np.diff(bounds) > 0).all()
    assert bounds[-2] < evidence
    assert bounds[-1] == pytest.approx(evidence, abs=1e-6)


@pytest.mark.parametrize("constant", [True, False])
def test_inducing_points_at_all_rows_give_the_exact_answers(constant):
    exact, inducing, theta = both(Matern(0.9), X, constant)
    own = len(read(free(exact.kernel)))
    full, few = exact.solve(theta[own:]), inducing.solve(theta[own:])
    assert few.mean == pytest.approx(full.mean, abs=1e-7)
    for question in ("marginal", "joint"):
        for mine, other in zip(getattr(few, question)(NEW), getattr(full, question)(NEW), strict=True):
            np.testing.assert_allclose(mine.detach(), other, atol=1e-6)
    np.testing.assert_allclose(few.location(NEW), full.location(NEW), atol=1e-6)
    gradients = [problem.value_and_grad(theta)[1] for problem in (inducing, exact)]
    np.testing.assert_allclose(*gradients, atol=1e-5)


def test_the_gradient_of_the_bound_is_that_of_differences():
    _, bound, theta = both(1.0 * RBF(0.8, ard=True), X[:9])
    _, gradient = bound.value_and_grad(theta)
    steps = 1e-5 * torch.eye(len(theta), dtype=torch.float64)
    expected = [(bound.value_and_grad(theta + s)[0] - bound.value_and_grad(theta - s)[0]) / 2e-5 for s in steps]
    np.testing.assert_allclose(gradient, expected, atol=1e-5)


def test_inducing_points_lie_apart_and_come_from_the_seed():
    first, again = (choose_inducing(X, 12, seed=3) for _ in range(2))
    assert torch.equal(first, again)
    assert len(torch.unique(first, dim=0)) == 12
    assert torch.equal(choose_inducing(X, 100, seed=0), X)


def test_a_few_inducing_points_do_nearly_as_well_on_many_rows(seed):
    """3,000 rows of a smooth function by 40 points: predictions near the truth, a bound near the noise's limit.

    Predictions are within 6 of their standard errors, the noise within 5 of 1/√6,000, and the fraction inside an
    interval within 5 of √(0.09/3,000): a false alarm in 2 of 10⁶ seeds.
    """
    random = np.random.default_rng(seed)
    x = random.uniform(0, 6, size=(3000, 1))
    y = np.sin(2 * x[:, 0]) + 0.3 * random.normal(size=3000)
    model = GaussianProcess(1.0 * RBF(), inducing=40, starts=1, random_state=seed).fit(x, y)
    grid = np.linspace(0.2, 5.8, 50)[:, None]
    error = np.sqrt(model.posterior(grid).variance.numpy())
    assert error.max() < 0.06
    assert (np.abs(model.predict(grid) - np.sin(2 * grid[:, 0])) < 6 * error).all()
    assert model.noise_ == pytest.approx(0.3, rel=5 / np.sqrt(6000))
    lower, upper = model.predict_interval(x, 0.9)
    assert ((lower <= y) & (y <= upper)).mean() == pytest.approx(0.9, abs=5 * np.sqrt(0.09 / 3000))
    exact = GaussianProcess(model.kernel_, Normal(model.noise_), learn=False).fit(x[:1000], y[:1000])
    part = GaussianProcess(model.kernel_, Normal(model.noise_), learn=False, inducing=40, random_state=0)
    assert part.fit(x[:1000], y[:1000]).log_evidence_ <= exact.log_evidence_ + 1e-6


def test_inducing_points_that_repeat_lower_the_bound_a_little():
    rows = np.repeat(X.numpy()[:6], 10, 0)
    models = [GaussianProcess(RBF(3.0), Normal(0.3), learn=False, inducing=points) for points in (60, None)]
    few, exact = (model.fit(rows, Y.numpy()) for model in models)
    assert few.jitter_ > 0
    assert exact.log_evidence_ - 1e-5 < few.log_evidence_ < exact.log_evidence_
