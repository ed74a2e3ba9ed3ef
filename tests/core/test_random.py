from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

from likely import Regressor
from likely.core.errors import SpecError
from likely.core.random import current_generator, drawing, isolated, normal_like, redirected, seed_of, spread
from likely.inference import MAP, MCDropout
from likely.networks import MLP

seeds = st.integers(0, 2**32 - 1)


@given(seeds)
def test_a_number_gives_one_seed(number):
    assert seed_of(number) == seed_of(np.int64(number)) == seed_of(np.random.RandomState(number))
    assert 0 <= seed_of(number) < 2**31


def test_a_source_gives_another_seed_each_time():
    for source in (np.random.RandomState(0), np.random.default_rng(0), None):
        seeds = [seed_of(source) for _ in range(20)]
        assert len(set(seeds)) == 20  # chance of a collision: 20² / 2³² < 1e-7
    assert seed_of(np.random.default_rng(5)) == seed_of(np.random.default_rng(5))


@pytest.mark.parametrize("wrong", [-1, 2**32, 1.5, "seed", [1, 2.5], object])
def test_what_is_no_seed_is_named(wrong):
    with pytest.raises(SpecError, match=r"random_state=.* is not a seed; use an integer"):
        seed_of(wrong)


@given(seeds, st.integers(1, 8), st.integers(0, 8))
def test_the_first_seeds_do_not_depend_on_how_many_are_asked_for(seed, count, more):
    assert spread(seed, count) == spread(seed, count + more)[:count]
    assert len(set(spread(seed, count))) == count  # chance of a collision in 50 examples: below 1e-6


@given(seeds)
def test_isolated_leaves_torch_as_it_was(seed):
    before = torch.get_rng_state()
    with isolated(seed):
        first = torch.randn(5)
    assert torch.equal(torch.get_rng_state(), before)
    with isolated(seed), isolated(seed + 1):
        pass
    with isolated(seed):
        assert torch.equal(torch.randn(5), first)


def test_isolated_leaves_torch_as_it_was_after_an_error():
    before = torch.get_rng_state()
    with pytest.raises(RuntimeError, match="size"), isolated(3):
        torch.randn(3) + torch.randn(4)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_fit_and_its_answers_leave_global_states_as_they_were():
    X, y = np.random.default_rng(0).normal(size=(30, 2)), np.arange(30.0)
    numpy_before, torch_before = np.random.get_state()[1].copy(), torch.get_rng_state()  # noqa: NPY002
    network, inference = MLP((4,), dropout=0.5), MCDropout(3, by=MAP(epochs=2))
    model = Regressor(network=network, inference=inference, random_state=0).fit(X, y)
    model.predict(X)
    model.sample(X, 3)
    assert torch.equal(torch.get_rng_state(), torch_before)
    assert np.array_equal(np.random.get_state()[1], numpy_before)  # noqa: NPY002
    again = Regressor(network=network, inference=inference, random_state=0).fit(X, y)
    assert np.array_equal(again.predict(X), model.predict(X))
    assert np.array_equal(again.sample(X, 3), model.sample(X, 3))


SHIFTED = torch.arange(32.0).reshape(4, 8) / 10

DRAWS = {
    "rand": lambda: torch.rand(3),
    "randn": lambda: torch.randn(3),
    "randint": lambda: torch.randint(2, 9, (3,)),
    "randperm": lambda: torch.randperm(9),
    "rand_like": lambda: torch.rand_like(SHIFTED),
    "randn_like": lambda: torch.randn_like(SHIFTED),
    "randint_like": lambda: torch.randint_like(SHIFTED, 9),
    "bernoulli": lambda: torch.bernoulli(SHIFTED.sigmoid()),
    "normal": lambda: torch.normal(SHIFTED, 1.0),
    "normal of scales": lambda: torch.normal(0.0, SHIFTED + 1),
    "multinomial": lambda: torch.multinomial(SHIFTED.exp(), 2),
    "poisson": lambda: torch.poisson(SHIFTED.exp()),
    "binomial": lambda: torch.binomial(SHIFTED.exp().ceil(), SHIFTED.sigmoid()),
    "in place": lambda: torch.stack([SHIFTED.clone().uniform_(), SHIFTED.clone().normal_(), SHIFTED.clone().cauchy_()]),
    "gamma": lambda: torch.distributions.Gamma(SHIFTED + 1, 1.0).sample(),
    "beta": lambda: torch.distributions.Beta(SHIFTED + 1, SHIFTED + 2).rsample(),
    "student": lambda: torch.distributions.StudentT(SHIFTED + 1).sample(),
    "gumbel softmax": lambda: functional.gumbel_softmax(SHIFTED),
    "dropout": lambda: functional.dropout(SHIFTED, 0.5),
    "dropout of channels": lambda: functional.dropout2d(torch.ones(9, 9, 2, 2), 0.5),
    "alpha dropout": lambda: functional.alpha_dropout(SHIFTED, 0.5, training=True),
    "rrelu": lambda: functional.rrelu(-SHIFTED, training=True),
    "attention": lambda: functional.scaled_dot_product_attention(
        SHIFTED[None], SHIFTED[None], SHIFTED[None], None, 0.5
    ),
    "linear": lambda: nn.Linear(3, 2).weight,
    "lstm": lambda: nn.LSTM(8, 4, 2, dropout=0.5)(SHIFTED[None])[0],
    "orthogonal": lambda: nn.init.orthogonal_(SHIFTED.clone()),
    "under vmap": lambda: torch.vmap(lambda row: functional.dropout(row, 0.5), randomness="different")(SHIFTED),
}


@pytest.mark.parametrize("name", DRAWS)
def test_all_of_torch_draws_from_the_generator_inside(name):
    draw, before = DRAWS[name], torch.get_rng_state()
    with isolated(3):
        first, second = draw(), draw()
    assert not torch.equal(first, second)
    with drawing(torch.Generator().manual_seed(3)) as generator, redirected():
        assert torch.equal(draw(), first)
    with isolated(generator):
        assert torch.equal(draw(), second)  # the generator goes on where it was
    assert torch.equal(torch.get_rng_state(), before)


def test_a_generator_that_is_given_is_kept():
    with isolated(0):
        own = torch.randn(3, generator=torch.Generator().manual_seed(5))
        poisson = torch.poisson(SHIFTED, torch.Generator().manual_seed(5))
    assert torch.equal(own, torch.randn(3, generator=torch.Generator().manual_seed(5)))
    assert torch.equal(poisson, torch.poisson(SHIFTED, torch.Generator().manual_seed(5)))


def test_drawing_changes_only_what_asks():
    before = torch.get_rng_state()
    with drawing(1):
        asked = normal_like(SHIFTED)
        torch.rand(1)
    assert not torch.equal(torch.get_rng_state(), before)
    with isolated(1):
        assert torch.equal(torch.randn(SHIFTED.shape), asked)
    assert current_generator() is None


def test_threads_do_not_see_each_other():
    def work(seed):
        with isolated(seed):
            return torch.stack([torch.randn(50) for _ in range(40)])

    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(work, range(16)))
    assert all(torch.equal(drawn, work(seed)) for seed, drawn in enumerate(together))
