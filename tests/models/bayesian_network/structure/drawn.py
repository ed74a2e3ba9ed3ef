"""Rows drawn from random networks, for tests of methods that learn graphs."""

import numpy as np

from likely.models.bayesian_network.structure.sample import Sample

NAMES = list("abcde")


def draw(network, seed, count=500, variables=5):
    tables, vector = network(seed, variables)
    codes = tables.ancestral(vector, count, np.random.default_rng(seed))
    return Sample.of(NAMES[:variables], codes, np.ones(count), tables.sizes)


def parents_of(edges, count=5):
    return [frozenset(parent for parent, own in edges if own == child) for child in range(count)]


def collider(seed, count=3000):
    """rain → wet ← sprinkler, wet → slippery; independences that fail by chance at a rate of about 3 · 1e-4."""
    rng = np.random.default_rng(seed)
    rain, sprinkler = rng.random((2, count)) < 0.5
    wet = (rain | sprinkler) ^ (rng.random(count) < 0.1)
    return {"rain": rain, "sprinkler": sprinkler, "wet": wet, "slippery": wet ^ (rng.random(count) < 0.2)}
