from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from torch import nn

from likely import GaussianMixture, Mixture, Regressor
from likely.core.threads import ELEMENTWISE, SPLIT, available_threads, by_threads, factorisation, footprint, threads_for
from likely.inference import EM, MAP
from likely.likelihoods import Poisson
from likely.networks.layers import LSTMLayer


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_parts_are_contiguous_and_in_order(two_threads):
    threads = []

    def work(rows):
        threads.append(threading.get_ident())
        assert torch.get_num_threads() == 1
        return rows

    parts = by_threads(work, slice(5, 50_006))
    assert (parts[0].start, parts[-1].stop) == (5, 50_006)
    assert len(parts) == 2
    assert parts[0].stop == parts[1].start
    assert threading.get_ident() not in threads
    assert torch.get_num_threads() == 2
    assert by_threads(lambda rows: (rows, torch.get_num_threads()), slice(0, 100)) == [(slice(0, 100), 1)]
    assert by_threads(lambda rows: torch.get_num_threads(), slice(0, 50_000), most=1) == [2]


def test_an_error_leaves_the_threads_as_they_were(two_threads):
    with pytest.raises(ZeroDivisionError):
        by_threads(lambda rows: 1 / 0, slice(0, 100_000))
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize("kind", ["full", "diag", "poisson"])
def test_two_threads_end_where_one_does(two_threads, kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40_000, 2)) + 3 * (np.arange(40_000) % 2)[:, None]
    few = EM(max_iter=3, tol=0.0)
    if kind == "poisson":
        X, model = np.floor(np.abs(X)), Mixture(Poisson(), 2, few, random_state=0)
    else:
        model = GaussianMixture(2, kind, inference=few, random_state=0)
    both = model.fit(X).log_prob(X)
    torch.set_num_threads(1)
    np.testing.assert_allclose(both, model.fit(X).log_prob(X), rtol=1e-9)


def test_small_work_gets_one_thread_and_large_work_what_the_user_allows(two_threads):
    for work, threads in ((0, 1), (SPLIT - 1, 1), (SPLIT, 2)):
        with threads_for(work) as given:
            assert given == torch.get_num_threads() == threads
            assert available_threads() == 2
            with threads_for(0):
                assert torch.get_num_threads() == 1
            assert torch.get_num_threads() == threads
        assert torch.get_num_threads() == 2
    torch.set_num_threads(1)
    with threads_for(SPLIT) as given:
        assert given == 1  # never above the user's choice


def test_threads_that_overlap_leave_what_the_user_chose(two_threads):
    inside, leave = threading.Barrier(5), threading.Event()

    def compute(work):
        with threads_for(work) as given:
            inside.wait()
            leave.wait()
            return given, torch.get_num_threads()

    with ThreadPoolExecutor(4) as pool:
        started = [pool.submit(compute, work) for work in (0, SPLIT, 0, SPLIT)]
        inside.wait()
        assert available_threads() == 2
        leave.set()
        assert [future.result() for future in started] == [(1, 1), (2, 2), (1, 1), (2, 2)]
        assert set(pool.map(lambda _: torch.get_num_threads(), range(8))) == {2}
    assert torch.get_num_threads() == 2


def test_workers_of_several_are_not_split_again(two_threads):
    def work(rows):
        with threads_for(SPLIT) as given:
            return given, available_threads()

    assert by_threads(work, slice(0, 40_000)) == [(1, 1), (1, 1)]
    assert available_threads() == 2


def test_the_footprint_of_a_row_is_its_largest_product_and_layer():
    dense = nn.Sequential(nn.Linear(10, 50), nn.ReLU(), nn.Linear(50, 3))
    assert footprint(dense, torch.zeros(4, 10)) == (50 * ELEMENTWISE, 50)  # its ReLU costs more than its product
    assert footprint(nn.Linear(100, 50), torch.zeros(4, 100)) == (5000, 50)
    assert footprint(nn.Conv2d(5, 2, 3), torch.zeros(3, 5, 6, 6)) == (16 * 2 * 45, 16 * 2)
    layer = LSTMLayer(4, 8)
    short, long = (footprint(layer, torch.zeros(2, steps, 4)) for steps in (5, 50))
    assert short.work == long.work  # step by step: an operation is one step
    assert long.width == 50 * 8
    assert not any(module._forward_hooks for module in dense.modules())


def test_factorisations_wait_between_panels():
    assert factorisation(100) < factorisation(700) < SPLIT < factorisation(800)


def test_a_small_fit_and_its_answers_use_one_thread_and_give_back_two(two_threads):
    seen = []

    class Spy(nn.Linear):
        def forward(self, x):
            seen.append(torch.get_num_threads())
            return super().forward(x)

    X = np.random.default_rng(0).normal(size=(50, 3))
    network = lambda in_shape, out_features: Spy(3, out_features)  # noqa: E731
    model = Regressor(network=network, inference=MAP(epochs=2, batch_size=None), random_state=0).fit(X, X[:, 0])
    steps = 2
    model.predict(X)
    assert seen[-steps - 1 :] == [1] * (steps + 1)
    assert torch.get_num_threads() == 2
