from __future__ import annotations

import numpy as np
import pytest
import torch

from likely.core.errors import LikelyWarning, TrainingError
from likely.kernels import RBF
from likely.kernels.cholesky import COARSE, cholesky, report_jitter, root_of


def test_a_sound_matrix_gets_no_jitter():
    K = RBF(0.3).matrix(np.random.default_rng(0).normal(size=(40, 3)))
    factor, jitter = cholesky(K, "raise alpha")
    assert jitter == 0.0
    torch.testing.assert_close(factor @ factor.mT, K, rtol=0, atol=1e-14)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("rows", [[0.0, 0.0, 1.0], np.linspace(0, 1, 60)], ids=["equal rows", "dense rows"])
def test_a_singular_matrix_gets_the_least_that_helps_and_says_so(rows, scale):
    K = scale * RBF().matrix(np.reshape(rows, (-1, 1)))
    factor, share = cholesky(K, "raise alpha")
    assert 0 < share <= 1e-10
    with pytest.warns(LikelyWarning, match=rf"singular .*; {share:.0e} of .* avoid that, raise alpha\."):
        report_jitter(share, "raise alpha")
    jitter = share * float(K.diagonal().mean())
    torch.testing.assert_close(factor @ factor.mT, K + jitter * torch.eye(len(K)), rtol=0, atol=1e-12 * scale)


def test_a_matrix_that_is_no_covariance_is_refused():
    with pytest.raises(TrainingError, match=r"of 2 rows is not positive definite, even with 1e-06.*; raise alpha\."):
        cholesky(torch.tensor([[1.0, 2.0], [2.0, 1.0]], dtype=torch.float64), "raise alpha")
    with pytest.raises(TrainingError, match="entries that are not finite"):
        cholesky(torch.full((2, 2), torch.nan, dtype=torch.float64), "raise alpha")


def test_gradients_pass_through():
    start = torch.tensor([[2.0, 0.5], [0.5, 1.0]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda m: cholesky(0.5 * (m + m.mT), "raise alpha")[0], start)


def test_a_coarse_ladder_begins_later_and_zeros_may_have_a_factor():
    ones = torch.ones(5, 5, dtype=torch.float64)
    factor, share = cholesky(ones, "raise alpha", COARSE)
    assert share == 1e-10
    np.testing.assert_allclose(factor @ factor.mT, np.ones((5, 5)), atol=1.1e-10)
    assert cholesky(0 * ones, "raise alpha", COARSE, zeros=True)[0].abs().max() == 0
    with pytest.raises(TrainingError, match="not positive definite"):
        cholesky(0 * ones, "raise alpha")


def test_a_root_of_nothing_is_nearly_nothing():
    root = root_of(torch.zeros(3, 3, dtype=torch.float64), 1.0)
    assert float((root @ root.mT).abs().max()) <= 1e-13
    with pytest.raises(TrainingError, match="not positive semidefinite to working precision"):
        root_of(-torch.eye(3, dtype=torch.float64), 1.0)
