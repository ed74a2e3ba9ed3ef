"""Random networks, and every answer about them by going through all states."""

import itertools

import numpy as np
import pytest

from likely.models.bayesian_network.dag import Dag
from likely.models.bayesian_network.tables import Tables


class Enumeration:
    """The whole joint table of a network, and sums over it."""

    def __init__(self, tables, vector):
        self.sizes = tables.sizes
        self.joint = np.ones(tables.sizes)
        for variable, table in enumerate(tables.split(vector)):
            for states in itertools.product(*map(range, tables.sizes)):
                family = tables.dag.family(variable)
                self.joint[states] *= table[tuple(states[member] for member in family)]

    def given(self, codes, weights=None):
        """p(x, evidence) for all x: zero where x contradicts the codes, weighed where evidence is soft."""
        joint = self.joint.copy()
        start = np.cumsum([0, *self.sizes])
        for variable, code in enumerate(codes):
            factor = np.ones(self.sizes[variable]) if code < 0 else np.eye(self.sizes[variable])[code]
            if weights is not None:
                factor = factor * weights[start[variable] : start[variable + 1]]
            joint *= factor.reshape([-1 if axis == variable else 1 for axis in range(joint.ndim)])
        return joint

    def marginals(self, codes, weights=None):
        joint = self.given(codes, weights)
        axes = range(joint.ndim)
        sums = [joint.sum(tuple(axis for axis in axes if axis != variable)) for variable in axes]
        return np.concatenate(sums) / joint.sum()


def random_network(seed, count, zeros=False):
    """A random graph of `count` variables with 2 to 4 states (2 where there are many), and random tables."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(count)
    names = [f"v{place}" for place in range(count)]
    edges = list(names)
    for place in range(count):
        parents = [order[other] for other in range(place) if rng.random() < 2.0 / max(place, 2)][:3]
        edges += [(names[parent], names[order[place]]) for parent in parents]
    dag = Dag.from_edges(edges)
    sizes = rng.integers(2, 5 if count <= 7 else 3, count)
    tables = Tables(dag, sizes)
    counts = rng.gamma(0.7, size=tables.start[-1])
    if zeros:
        counts[rng.random(len(counts)) < 0.25] = 0
    return tables, tables.normalise(counts)


@pytest.fixture
def network():
    return random_network


@pytest.fixture
def enumeration():
    return Enumeration
