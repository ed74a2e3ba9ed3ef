"""Codes at several levels: the ratio of densities, in closed form and at draws."""

from __future__ import annotations

import math

import pytest
import torch

from likely.core.random import isolated
from likely.models.generative.ladder import Ladder, bounded, start_of
from likely.models.generative.latent_priors import Normal
from likely.networks import MLP


def ladder(levels, seed=0):
    with isolated(seed):
        built = Ladder(2, levels, Normal(), MLP((8,), activation="tanh")).double()
        out = torch.randn(3, built.size).double()
    return built, out


@pytest.mark.parametrize("levels", [1, 2, 3])
def test_the_closed_form_is_the_mean_over_draws(levels, seed):
    """20,000 draws, 6 standard errors of the difference: false alarm below 1e-8 for each of three rows."""
    built, out = ladder(levels)
    with torch.no_grad(), isolated(seed):
        closed = built.codes(out, 20_000, analytic=True).log_ratio.expand(20_000, 3)
        plain = built.codes(out, 20_000).log_ratio
    error = ((closed.var(0) + plain.var(0)) / 20_000).sqrt()
    assert bool(((closed.mean(0) - plain.mean(0)).abs() < 6 * error + 1e-9).all())


@pytest.mark.parametrize("levels", [1, 3])
def test_codes_weighed_anew_have_the_ratio_they_were_drawn_with(levels):
    built, out = ladder(levels)
    with torch.no_grad(), isolated(1):
        codes = built.codes(out, 4)
        again = built.codes(out, 4, at=codes.levels)
    assert len(codes.levels) == levels
    torch.testing.assert_close(again.log_ratio, codes.log_ratio)
    assert torch.equal(again.z, codes.z)


def test_p_over_q_has_mean_one_over_draws_of_q(seed):
    """E_q[p(z)/q(z | x)] = 1 at one level with a wide q; 50,000 draws, 6 standard errors."""
    built, _ = ladder(1)
    wide = torch.cat([torch.zeros(3, 2), torch.full((3, 2), 3.0)], 1).double()  # log σ = 0.5
    with torch.no_grad(), isolated(seed):
        ratio = built.codes(wide, 50_000).log_ratio.exp()
    assert bool(((ratio.mean(0) - 1).abs() < 6 * ratio.std(0) / math.sqrt(50_000)).all())


def test_scales_are_bounded_and_new_codes_have_the_latent_shape():
    assert bounded(torch.tensor([-1e9, 1e9])).tolist() == [-10.0, 10.0]
    built, out = ladder(3)
    with isolated(0):
        assert built.sample(5, out).shape == (5, 2)
    assert [part.shape for part in built.middle(out)] == [(3, 2), (3, 2)]


def test_codes_of_many_columns_start_narrower():
    """Where an encoder gives 0, log σ is that of a precision 1 + columns / 2, and e⁻¹ at most."""
    built = Ladder(2, 1, Normal(), MLP((4,)), start_of(100))
    (_, log_scale) = built.seen(torch.zeros(1, 4))[0]
    assert float(torch.exp(-2 * log_scale[0, 0])) == pytest.approx(51.0, rel=1e-5)
    assert start_of(1) == start_of(10) == -1.0
