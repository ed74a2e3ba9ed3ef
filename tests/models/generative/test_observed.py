"""p(x | η) of rows: the sum of the columns' likelihoods, whatever they are."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from likely.core.random import isolated
from likely.data.coded import Coded
from likely.likelihoods import Bernoulli, Categorical, Gamma, Normal, Poisson
from likely.models.generative.observed import Observed, columns_of

MIXED = [Normal(), Bernoulli(), Poisson(), Categorical(3), Normal(scale="input"), Gamma()]


def rows(count=50):
    rng = np.random.default_rng(0)
    table = np.column_stack(
        [
            rng.normal(100, 5, count),
            rng.random(count) < 0.3,
            rng.poisson(4, count),
            rng.integers(3, size=count),
            rng.normal(-2, 0.1, count),
            rng.gamma(2.0, 3.0, count),
        ]
    )
    return torch.from_numpy(table)


def observed(x, likelihood=MIXED):
    module = Observed(columns_of(likelihood, x), tuple(x.shape[1:])).double()
    module.adapt(x, None)
    return module


def test_at_zero_it_is_the_product_of_the_columns_own_estimates():
    x = rows()
    module = observed(x)
    total = module.log_prob(torch.zeros(len(x), module.size, dtype=torch.float64), x)
    expected = torch.zeros(len(x), dtype=torch.float64)
    for index, likelihood in enumerate(MIXED):
        eta = likelihood.weighted_mle(x[:, index], torch.ones(len(x), dtype=torch.float64))
        expected += likelihood.log_prob(eta, x[:, index])
    torch.testing.assert_close(total, expected)


def test_a_missing_value_does_not_count_and_gives_no_gradient():
    x = rows()
    module = observed(x)
    out = torch.zeros(len(x), module.size, dtype=torch.float64, requires_grad=True)
    holes = x.clone()
    holes[:, 0] = torch.nan
    log_probs = module.each_log_prob(out, holes)
    assert not bool(log_probs[0].any())
    sum(values.sum() for values in log_probs).backward()
    assert bool(out.grad.isfinite().all())
    assert not bool(out.grad[:, 0].any())


def test_draws_have_the_mean_that_it_says(seed):
    x = rows()
    module = observed(x)
    with isolated(seed), torch.no_grad():
        draws = module.sample(torch.zeros(20_000, module.size, dtype=torch.float64))
        mean = module.mean(torch.zeros(1, module.size, dtype=torch.float64))[0]
    error = draws.std(0) / np.sqrt(20_000)
    numbers = [0, 2, 4, 5]
    # six standard errors of four means: false alarms below 1e-8
    assert bool(((draws.mean(0) - mean).abs()[numbers] < 6 * error[numbers]).all())
    assert set(draws[:, 3].unique().tolist()) <= {0.0, 1.0, 2.0}


def test_images_have_one_likelihood_for_all_pixels():
    x = (torch.rand(30, 2, 3, 3, dtype=torch.float64) < 0.4).double()
    module = observed(x, Bernoulli())
    assert (len(module.parts), module.size) == (1, 18)
    out = torch.zeros(30, 18, dtype=torch.float64)
    assert module.log_prob(out, x).shape == (30,)
    with isolated(0):
        assert module.sample(out).shape == x.shape


@pytest.mark.parametrize(
    ("kind", "expected"), [("category", Categorical(3)), ("boolean", Bernoulli()), ("number", Poisson())]
)
def test_text_and_booleans_of_a_table_have_likelihoods_of_labels(kind, expected):
    coded = [Coded("a", kind, ("x", "y", "z") if kind == "category" else ())]
    x = torch.tensor([[0.0], [1.0]])
    assert columns_of(Poisson(), x, coded).parts[0].likelihood == expected
