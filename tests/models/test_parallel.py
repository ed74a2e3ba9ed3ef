from __future__ import annotations

import threading

import numpy as np
import pytest
import torch

from likely import GaussianMixture, Mixture
from likely.inference import EM
from likely.likelihoods import Poisson
from likely.models.parallel import by_threads


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
    assert by_threads(work_of_few, slice(0, 100)) == [slice(0, 100)]
    assert len(by_threads(work_of_few, slice(0, 50_000), most=1)) == 1


def work_of_few(rows):
    assert torch.get_num_threads() == 2
    return rows


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
