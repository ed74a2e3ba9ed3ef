from __future__ import annotations

import pytest
import torch

from likely.likelihoods import Bernoulli, Beta, Categorical, Gamma, NegativeBinomial, Normal, Ordinal, Poisson, StudentT
from likely.likelihoods.mle import BOX, maximise

ONES = torch.ones(40)
EXTREME = {
    "ones": (Bernoulli(), ONES),
    "zero counts": (Poisson(), 0 * ONES),
    "one class of three": (Categorical(), 2 * ONES),
    "a label in the middle is absent": (Ordinal(), 2 * (torch.arange(40) % 2).float()),
    "equal counts": (NegativeBinomial(), 5 * ONES),
    "equal numbers": (StudentT(df="learned"), 5 * ONES),
    "equal zeros": (StudentT(), 0 * ONES),
    "equal positive numbers": (Gamma(), 5 * ONES),
    "equal shares": (Beta(), 0.3 * ONES),
    "shares near the ends": (Beta(), torch.where(torch.arange(40) % 2 == 0, 1e-6, 1 - 1e-6)),
    "tiny positive numbers": (Gamma(), torch.linspace(1e-7, 1e-6, 40)),
    "counts of a million": (NegativeBinomial(), torch.linspace(0, 1e6, 40).round()),
}


@pytest.mark.parametrize("case", EXTREME)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_always_finite(case, dtype):
    likelihood, y = EXTREME[case]
    eta = maximise(likelihood, y.to(dtype), ONES.to(dtype))
    assert eta.dtype == dtype
    assert bool(eta.isfinite().all())
    log_prob = likelihood.log_prob(eta.expand(40, -1), y.to(dtype))
    assert bool(log_prob.isfinite().all())


def test_an_optimum_at_infinity_stops_at_the_box():
    assert 10 < maximise(Bernoulli(), ONES, ONES).item() <= BOX


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_equivariant_under_a_change_of_unit(generator, unit):
    y = torch.randn(100, dtype=torch.float64)
    weight = torch.ones(100, dtype=torch.float64)
    for likelihood in (Normal(), StudentT(df="learned")):
        plain, scaled = maximise(likelihood, y, weight), maximise(likelihood, unit * y, weight)
        assert scaled[0].item() == pytest.approx(unit * plain[0].item(), rel=1e-6)
        assert scaled[1].exp().item() == pytest.approx(unit * plain[1].exp().item(), rel=1e-6)


def test_weights_of_zero_hide_even_absurd_rows(generator):
    y = torch.randn(50, dtype=torch.float64)
    weight = torch.ones(50, dtype=torch.float64)
    absurd = torch.cat([y, torch.tensor([1e30], dtype=torch.float64)])
    hidden = torch.cat([weight, torch.zeros(1, dtype=torch.float64)])
    torch.testing.assert_close(maximise(StudentT(), absurd, hidden), maximise(StudentT(), y, weight))
    torch.testing.assert_close(Normal().weighted_mle(absurd, hidden), Normal().weighted_mle(y, weight))
