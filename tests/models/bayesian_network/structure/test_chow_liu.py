"""Chow and Liu: the tree of the largest likelihood of all."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from tests.models.bayesian_network.structure.drawn import draw, parents_of

from likely.models.bayesian_network import ChowLiu
from likely.models.bayesian_network.structure.hill_climbing import FamilyScore


@pytest.mark.parametrize("seed_of_network", range(3))
def test_chow_liu_is_the_most_likely_tree(network, seed_of_network):
    """Over all 125 trees of 5 variables, each rooted at the first."""
    sample = draw(network, seed_of_network)
    score = FamilyScore(sample, None)
    score.price = 0.0  # the log-likelihood alone
    best = -np.inf
    for edges in itertools.combinations(itertools.combinations(range(5), 2), 4):
        directed = rooted(edges)
        if directed is not None:
            best = max(best, score.total(parents_of(directed)))
    edges = ChowLiu().learn(sample, np.random.default_rng(0))
    assert score.total(parents_of(edges)) == pytest.approx(best, rel=1e-12)


def rooted(edges):
    """A tree directed away from its first variable, or None for what is no tree."""
    known, directed = {0}, []
    for _ in range(4):
        for one, other in edges:
            for parent, child in ((one, other), (other, one)):
                if parent in known and child not in known:
                    known.add(child)
                    directed.append((parent, child))
    return directed if len(known) == 5 else None
