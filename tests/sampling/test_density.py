"""Log-densities at the door: −∞ outside the support, errors that name the place, generators that leave torch alone."""

from __future__ import annotations

import math

import pytest
import torch
from torch.distributions import Beta, Dirichlet, Exponential, Independent, Normal

from likely.core.errors import DataError
from likely.sampling.density import as_generator, as_log_density, as_real, draw, log_prob_of, shown

ROWS = torch.tensor([-1.0, 0.5, 3.0], dtype=torch.float64)


def test_a_distribution_answers_with_no_mass_outside_its_support():
    log_prob = as_log_density(Exponential(torch.tensor(2.0, dtype=torch.float64)), "target")(ROWS)
    torch.testing.assert_close(log_prob, torch.tensor([-math.inf, math.log(2) - 1.0, math.log(2) - 6.0]).double())


def test_vectors_have_mass_on_their_simplex_only():
    rows = torch.tensor([[0.2, 0.8], [0.5, 0.9]], dtype=torch.float64)
    flat = Dirichlet(torch.ones(2, dtype=torch.float64))
    torch.testing.assert_close(log_prob_of(flat, rows), torch.tensor([0.0, -math.inf], dtype=torch.float64))


def test_wrong_answers_are_errors_with_their_place():
    with pytest.raises(DataError, match=r"target is nan at -1 \(row 0\)"):
        as_log_density(torch.log, "target")(ROWS)
    with pytest.raises(DataError, match=r"target must give one number for each of the 3 rows.*gave shape \(3, 2\)"):
        as_log_density(lambda rows: torch.zeros(3, 2), "target")(ROWS)
    with pytest.raises(DataError, match=r"target must be a function of rows .* found int"):
        as_log_density(3, "target")
    with pytest.raises(DataError, match=r"target is a batch of \(2,\) distributions; join them.*Independent"):
        as_log_density(Normal(torch.zeros(2), 1.0), "target")


def test_unchecked_answers_keep_nan_where_distributions_inside_refuse():
    def inside(rows):
        return Beta(2.0, 2.0).log_prob(rows)

    density = as_log_density(inside, "target")
    with pytest.raises(DataError, match="target refused the rows that begin with -1"):
        density(ROWS)
    log_prob = density.unchecked(ROWS)
    assert log_prob.isnan().tolist()[0]
    assert log_prob[1].item() == pytest.approx(math.log(1.5), rel=1e-6)


def test_draws_depend_on_the_generator_alone():
    before = torch.get_rng_state()
    several = Independent(Normal(torch.zeros(2), torch.ones(2)), 1)
    first, second = (draw(several, as_generator(3), 5) for _ in range(2))
    assert torch.equal(first, second)
    assert first.shape == (5, 2)
    assert torch.equal(torch.get_rng_state(), before)
    given = torch.Generator()
    assert as_generator(given) is given


def test_numbers_and_positions_as_samplers_hold_and_show_them():
    assert as_real(torch.ones(2)).dtype == as_real(torch.ones(2, dtype=torch.bool)).dtype == torch.float64
    assert as_real(torch.ones(2, dtype=torch.int32)).dtype == torch.int64
    assert shown(torch.tensor(1.5)) == "1.5"
    assert shown(torch.arange(7)) == "[0, 1, 2, 3, 4, …]"
