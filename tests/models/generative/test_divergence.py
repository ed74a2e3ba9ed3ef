"""The divergence of a field: closed forms, both ways of finding it, and rows of any shape."""

from __future__ import annotations

import math

import pytest
import torch

from likely.core.random import drawing
from likely.models.generative.divergence import divergence, signs_like


@pytest.mark.parametrize("shape", [(3,), (2, 2, 3)])
def test_a_linear_field_has_the_trace_of_its_matrix(shape):
    size = math.prod(shape)
    matrix = torch.randn(size, size, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    x = torch.randn(4, *shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    value, trace = divergence(lambda x: (x.flatten(1) @ matrix.T).view_as(x), x)
    torch.testing.assert_close(value.flatten(1), x.flatten(1) @ matrix.T)
    torch.testing.assert_close(trace, matrix.trace().expand(4))


def test_the_divergence_of_a_gradient_is_the_laplacian():
    """f = ∇ Σ sin(x) has divergence −Σ sin(x)."""
    x = torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(divergence(torch.cos, x)[1], -x.sin().sum(1))


def test_probes_of_signs_are_unbiased(seed):
    """4,000 probes, 5 standard errors: false alarm 6e-7; the probe is exact where the Jacobian is diagonal."""
    matrix = torch.randn(6, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    x = torch.zeros(4_000, 6, dtype=torch.float64)
    with drawing(seed):
        probe = signs_like(x)
    assert set(probe.unique().tolist()) == {-1.0, 1.0}
    estimates = divergence(lambda x: x @ matrix.T, x, probe)[1]
    assert abs(float(estimates.mean() - matrix.trace())) < 5 * float(estimates.std()) / math.sqrt(len(x))
    torch.testing.assert_close(divergence(lambda x: 3.0 * x, x, probe)[1], torch.full((4_000,), 18.0).double())
