"""Fitting a Gaussian process: which problem targets pose, that a search only gains, and what it says at its end."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

from likely import GaussianProcess
from likely.core.errors import ConvergenceWarning, LikelyWarning
from likely.kernels import RBF, Matern, Periodic
from likely.likelihoods import Bernoulli, Normal, Poisson, StudentT
from likely.models.kernel.gp.evidence import Optimum
from likely.models.kernel.gp.fitting import exact, learn, pose, report_search, solve
from likely.models.kernel.gp.hyperparameters import free, read
from likely.models.kernel.gp.inducing import InducingPosterior
from likely.models.kernel.gp.laplace import Laplace, LaplacePosterior
from likely.models.kernel.gp.regression import ExactPosterior, Regression

RNG = np.random.default_rng(0)
X = torch.from_numpy(np.sort(RNG.uniform(0, 6, size=(25, 1)), 0))
Y = torch.sin(X[:, 0]) + 0.1 * torch.from_numpy(RNG.normal(size=25))
WEIGHT = torch.ones(25, dtype=torch.float64)


def posed(likelihood, y=Y):
    module = (1.0 * RBF(0.3)).build(X).double()
    return pose(module, likelihood, likelihood.target(y), X, y, WEIGHT, constant=True)


@pytest.mark.parametrize(("likelihood", "closed"), [(Normal(), True), (Normal(0.3), True), (Normal("input"), False)])
def test_only_normal_noise_of_one_size_has_a_closed_form(likelihood, closed):
    assert exact(likelihood) == closed
    assert isinstance(posed(likelihood), Regression if closed else Laplace)


def test_as_many_functions_as_numbers_that_are_not_shared():
    assert isinstance(posed(StudentT()), Laplace)
    assert posed(StudentT()).latent == 1
    assert posed(Normal("input")).latent == 2
    assert posed(Poisson(), Y.exp().round()).latent == 1


def test_the_search_ends_no_lower_than_where_it_began():
    problem = posed(Normal())
    given = torch.cat([read(free(problem.kernel)), problem.start()[0]])
    before, _ = problem.value_and_grad(given)
    one, three = (learn(problem, None, starts, 0, verbose=False) for starts in (1, 3))
    assert one.converged
    assert one.value > before
    assert three.value >= one.value - 1e-6
    assert problem.value_and_grad(one.hyperparameters)[0] == pytest.approx(one.value, abs=1e-9)
    _, gradient = problem.value_and_grad(one.hyperparameters)
    assert float(gradient.abs().max()) < 0.1  # nats per factor e: the top, from 25 rows


def test_each_problem_is_solved_by_its_own_posterior():
    problem, labels = posed(Normal(0.1)), posed(Bernoulli(), (Y > 0).double())
    nothing = torch.empty(0, dtype=torch.float64)
    full, few = solve(problem, nothing, None, None), solve(problem, nothing, X[::2], None)
    weights = torch.zeros(25, 1, dtype=torch.float64)
    by_mode = solve(labels, labels.start()[0], None, weights)
    for posterior, kind in ((full, ExactPosterior), (few, InducingPosterior), (by_mode, LaplacePosterior)):
        assert isinstance(posterior, kind)
        assert posterior.location(X).shape == (25, 1)
    assert float(few.log_evidence) <= float(full.log_evidence) + 1e-6  # Titsias's bound


def ended(held=(), *, converged=True):
    return Optimum(torch.tensor([np.log(20.0), np.log(3.0), np.log(2.0)]).double(), -1.0, 7, converged, held)


def test_what_held_the_search_back_is_named_as_a_person_knows_it():
    problem = posed(Normal())
    with pytest.warns(ConvergenceWarning, match=r"ended at lengthscale = 20: start the kernel's hyperparameters"):
        report_search(ended((0,)), problem, converged=False)
    with pytest.warns(ConvergenceWarning, match="ended at lengthscale = 20, noise = 2: start"):
        report_search(ended((0, 2)), problem, converged=False)
    with pytest.warns(ConvergenceWarning, match="still rising after 7 evaluations.*standardise X"):
        report_search(ended(), problem, converged=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report_search(ended(), problem, converged=True)


@pytest.mark.filterwarnings("ignore::likely.core.errors.ConvergenceWarning")
@pytest.mark.parametrize("kernel", [RBF(), Matern(), RBF() * Periodic()])
def test_targets_too_large_for_a_fixed_variance_are_told(kernel):
    """Only where no hyperparameter can change it, and where the targets are larger, not smaller."""
    rows = X.numpy()
    with pytest.warns(
        LikelyWarning, match=r"standard deviation of .* and the kernel's functions one of 1, .*1\.0 \* ke"
    ):
        GaussianProcess(kernel).fit(rows, 1000 * Y.numpy())
    with pytest.warns(LikelyWarning, match="most of what the targets do is taken for noise"):
        GaussianProcess(kernel, mean="zero", learn=False).fit(rows, 100 + Y.numpy())
    with warnings.catch_warnings():
        warnings.simplefilter("error", LikelyWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        GaussianProcess(kernel).fit(rows, Y.numpy())
        GaussianProcess(kernel).fit(rows, Y.numpy() / 1000)
        GaussianProcess(1.0 * kernel).fit(rows, 1000 * Y.numpy())
        GaussianProcess(kernel).fit(rows, 100 + Y.numpy())
