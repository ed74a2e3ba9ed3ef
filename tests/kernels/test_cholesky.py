from __future__ import annotations

import numpy as np
import pytest
import torch

from likely.core.errors import LikelyWarning, TrainingError
from likely.kernels import RBF
from likely.kernels.cholesky import cholesky


def test_a_sound_matrix_gets_no_jitter():
    K = RBF(0.3).matrix(np.random.default_rng(0).normal(size=(40, 3)))
    factor, jitter = cholesky(K, "raise alpha")
    assert jitter == 0.0
    torch.testing.assert_close(factor @ factor.mT, K, rtol=0, atol=1e-14)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("rows", [[0.0, 0.0, 1.0], np.linspace(0, 1, 60)], ids=["equal rows", "dense rows"])
def test_a_singular_matrix_gets_the_least_that_helps_and_says_so(rows, scale):
    K = scale * RBF().matrix(np.reshape(rows, (-1, 1)))
    with pytest.warns(LikelyWarning, match=rf"these {len(rows)} rows is singular to rounding; .* raise alpha\."):
        factor, jitter = cholesky(K, "raise alpha")
    assert 0 < jitter <= 1e-10 * scale
    torch.testing.assert_close(factor @ factor.mT, K + jitter * torch.eye(len(K)), rtol=0, atol=1e-12 * scale)


def test_a_matrix_that_is_no_covariance_is_refused():
    with pytest.raises(TrainingError, match=r"these 2 rows is not positive definite, even with 1e-06.*; raise alpha\."):
        cholesky(torch.tensor([[1.0, 2.0], [2.0, 1.0]], dtype=torch.float64), "raise alpha")
    with pytest.raises(TrainingError, match="not positive definite"):
        cholesky(torch.full((2, 2), torch.nan, dtype=torch.float64), "raise alpha")


def test_slopes_pass_through():
    start = torch.tensor([[2.0, 0.5], [0.5, 1.0]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda m: cholesky(0.5 * (m + m.mT), "raise alpha")[0], start)
