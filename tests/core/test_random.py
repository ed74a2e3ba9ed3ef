import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from likely import Regressor
from likely.core.errors import SpecError
from likely.core.random import isolated, seed_of, spread
from likely.inference import MAP, MCDropout
from likely.networks import MLP

seeds = st.integers(0, 2**32 - 1)


@given(seeds)
def test_a_number_gives_one_seed(number):
    assert seed_of(number) == seed_of(np.int64(number)) == seed_of(np.random.RandomState(number))
    assert 0 <= seed_of(number) < 2**31


def test_a_source_gives_another_seed_each_time():
    for source in (np.random.RandomState(0), np.random.default_rng(0), None):
        found = [seed_of(source) for _ in range(20)]
        assert len(set(found)) == 20  # chance of a collision: 20² / 2³² < 1e-7
    assert seed_of(np.random.default_rng(5)) == seed_of(np.random.default_rng(5))


@pytest.mark.parametrize("wrong", [-1, 2**32, 1.5, "seed", [1, 2.5], object])
def test_what_is_no_seed_is_named(wrong):
    with pytest.raises(SpecError, match=r"random_state=.* is no seed; use a whole number"):
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
        assert torch.initial_seed() == seed
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
