from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist
from sklearn.gaussian_process import kernels as peer

from likely.core.errors import SpecError
from likely.kernels import RBF, Matern, Periodic, RationalQuadratic
from likely.kernels.stationary import squared_distance

RNG = np.random.default_rng(0)
X, OTHER = RNG.normal(size=(30, 3)), RNG.normal(size=(11, 3))
LENGTHS = (0.5, 1.0, 3.0)

SAME = [
    (RBF(0.7), peer.RBF(0.7)),
    (RBF(LENGTHS), peer.RBF(LENGTHS)),
    (Matern(0.7, 0.5), peer.Matern(0.7, nu=0.5)),
    (Matern(0.7, 1.5), peer.Matern(0.7, nu=1.5)),
    (Matern(0.7, 2.5), peer.Matern(0.7, nu=2.5)),
    (Matern(LENGTHS, smoothness=1.5), peer.Matern(LENGTHS, nu=1.5)),
    (RationalQuadratic(0.7, 1.3), peer.RationalQuadratic(0.7, 1.3)),
]


@pytest.mark.parametrize(("ours", "theirs"), SAME, ids=lambda kernel: repr(kernel))
def test_values_are_those_of_scikit_learn(ours, theirs):
    np.testing.assert_allclose(ours.matrix(X), theirs(X), atol=1e-10)
    np.testing.assert_allclose(ours.matrix(X, OTHER), theirs(X, OTHER), atol=1e-10)
    np.testing.assert_allclose(ours.matrix(X, X.copy()), theirs(X, X.copy()), atol=1e-10)


@pytest.mark.parametrize(("ours", "theirs"), SAME, ids=lambda kernel: repr(kernel))
def test_gradients_in_log_lengthscales_are_those_of_scikit_learn(ours, theirs):
    module = ours.build(torch.from_numpy(X))
    _, expected = theirs(X, eval_gradient=True)
    seeds = torch.from_numpy(RNG.normal(size=(len(X), len(X))))
    (module(torch.from_numpy(X)) * seeds).sum().backward()
    gradient = module.lengthscale.log.grad.numpy()
    lengths = expected if not isinstance(theirs, peer.RationalQuadratic) else expected[..., 1:]  # alpha comes first
    np.testing.assert_allclose(gradient.reshape(-1), np.einsum("ij,ijk->k", seeds.numpy(), lengths), rtol=1e-8)


@pytest.mark.parametrize("columns", [1, 2])
def test_the_periodic_kernel_is_scikit_learns_product_over_columns(columns):
    """Theirs takes the sine of the distance; over one column that is ours, and ours multiplies columns."""
    theirs = peer.ExpSineSquared(length_scale=0.8, periodicity=1.7)
    expected = np.prod([theirs(X[:, [j]], OTHER[:, [j]]) for j in range(columns)], 0)
    np.testing.assert_allclose(Periodic(0.8, 1.7).matrix(X[:, :columns], OTHER[:, :columns]), expected, atol=1e-10)


def test_a_period_later_all_is_the_same():
    kernel = Periodic(0.8, 1.7)
    np.testing.assert_allclose(kernel.matrix(X + 1.7 * 3), kernel.matrix(X), atol=1e-12)
    np.testing.assert_allclose(kernel.matrix(X, OTHER + 1.7), kernel.matrix(X, OTHER), atol=1e-12)


@pytest.mark.parametrize("kernel", [RBF(0.7), Matern(0.7, 0.5), Matern(0.7), RationalQuadratic(0.7)], ids=repr)
def test_shifts_and_turns_of_all_rows_change_nothing(kernel):
    turn, _ = np.linalg.qr(RNG.normal(size=(3, 3)))
    np.testing.assert_allclose(kernel.matrix(X @ turn + 5.0), kernel.matrix(X), atol=1e-12)


def test_a_rational_quadratic_of_great_alpha_is_rbf():
    np.testing.assert_allclose(RationalQuadratic(0.7, 1e8).matrix(X), RBF(0.7).matrix(X), atol=1e-6)


def test_the_rational_quadratic_is_a_gamma_mixture_of_rbf():
    """∫ exp(−τ r²/2) Gamma(τ; α, rate α) dτ, by Gauss–Laguerre quadrature."""
    from scipy.special import gamma, roots_genlaguerre

    alpha = 2.5
    node, weight = roots_genlaguerre(60, alpha - 1)
    square = cdist(X, X, "sqeuclidean")
    mixed = sum(w * np.exp(-0.5 * square * t / alpha) for t, w in zip(node, weight, strict=True)) / gamma(alpha)
    np.testing.assert_allclose(RationalQuadratic(1.0, alpha).matrix(X), mixed, atol=1e-8)


def test_ard_learns_one_length_for_each_column():
    module = RBF(0.5, ard=True).build(torch.from_numpy(X))
    assert module.spec() == RBF((0.5, 0.5, 0.5), ard=True)
    held = RBF(0.5, learn=False).build(torch.from_numpy(X))
    assert not any(parameter.requires_grad for parameter in held.parameters())


@pytest.mark.parametrize("columns", [1, 3, 300])
@pytest.mark.parametrize("shift", [0.0, 1e3])
def test_equal_rows_are_at_no_distance_and_others_at_theirs(columns, shift):
    x = np.random.default_rng(1).normal(size=(40, columns)) + shift
    ours = squared_distance(torch.from_numpy(x), torch.from_numpy(x.copy())).numpy()
    assert (ours.diagonal() == 0).all()
    np.testing.assert_allclose(ours, cdist(x, x, "sqeuclidean"), rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("other", [False, True])
def test_gradients_of_distances_are_those_of_differences(other):
    x, y = (torch.from_numpy(part).requires_grad_() for part in (X[:6].copy(), OTHER[:4].copy()))
    inputs = (x, y) if other else (x,)

    def distances(x, y=None):
        return squared_distance(x, y)

    with warnings.catch_warnings():  # torch scripts its own rules for forward gradients, and warns that it does
        warnings.simplefilter("ignore", DeprecationWarning)
        assert torch.autograd.gradcheck(distances, inputs, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(distances, inputs)
    along = torch.func.vmap(lambda s: squared_distance(s * x, y if other else None))(torch.tensor([1.0, 2.0]).double())
    torch.testing.assert_close(along[1], squared_distance(2.0 * x, y if other else None))


def test_smoothness_is_one_of_three():
    with pytest.raises(SpecError, match=r"Matern\(smoothness=2\): smoothness must be 0.5, 1.5 or 2.5"):
        Matern(smoothness=2)
