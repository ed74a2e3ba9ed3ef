from __future__ import annotations

import numpy as np
import pytest
import torch

from likely.core.errors import DataError
from likely.plots import rank, trace
from likely.sampling import sample


@pytest.fixture(scope="module")
def chains():
    normal = torch.distributions.MultivariateNormal(torch.zeros(2), torch.eye(2))
    return sample(normal, [0.0, 0.0], draws=1000, warmup=500, random_state=0, names=["a", "b"])


def test_a_line_for_each_chain_holds_its_draws(chains):
    ax = trace(chains, 1)
    assert len(ax.lines) == 4
    for line, chain in zip(ax.lines, chains.draws[:, :, 1].numpy(), strict=True):
        np.testing.assert_array_equal(line.get_ydata(), chain)
    assert ax.get_ylabel() == "b"


def test_many_chains_are_thinned():
    assert len(trace(np.random.default_rng(0).normal(size=(100, 50))).lines) <= 12


def test_ranks_of_chains_that_agree_are_level_and_of_others_are_not():
    draws = np.random.default_rng(0).normal(size=(4, 1000))
    level = rank(draws, bins=10)
    assert all(abs(patch.get_data().values - 1).max() < 0.4 for patch in level.patches if hasattr(patch, "get_data"))
    apart = draws + np.array([0, 0, 0, 3])[:, None]
    steep = rank(apart, bins=10, name="shift")
    assert max(patch.get_data().values.max() for patch in steep.patches if hasattr(patch, "get_data")) > 2
    assert steep.get_title(loc="left").startswith("The chains do not agree on shift")


def test_ranks_of_each_chain_sum_to_its_draws(chains):
    ax = rank(chains, 0, bins=8)
    for patch in ax.patches:
        if hasattr(patch, "get_data"):
            assert np.isclose(patch.get_data().values.mean(), 1.0)


def test_places_that_are_not_there_are_refused(chains):
    with pytest.raises(DataError, match="coordinate=2 is not an index into draws of shape"):
        trace(chains, 2)
    with pytest.raises(DataError, match="the axes \\(chains, draws"):
        rank(np.zeros(3))
