"""What all ways to learn a graph share: colliders are found, required and forbidden edges honoured."""

from __future__ import annotations

import pytest
from tests.models.bayesian_network.structure.drawn import collider

from likely import BayesianNetwork
from likely.core.errors import DataError, SpecError
from likely.models.bayesian_network import PC, ChowLiu, HillClimbing, structural_hamming_distance

TRUE = [("rain", "wet"), ("sprinkler", "wet"), ("wet", "slippery")]


@pytest.mark.parametrize("structure", [PC(alpha=1e-4), HillClimbing()], ids=repr)
def test_a_collider_is_recovered(seed, structure):
    """Its arrows are the only ones possible. False alarms: a test at level 1e-4 or a penalty of log(3000)/2, < 1 %."""
    model = BayesianNetwork(structure=structure, random_state=0).fit(collider(seed))
    assert structural_hamming_distance(model.edges_, TRUE) == 0
    assert model.d_separated("rain", "sprinkler")
    assert model.markov_blanket("slippery") == ["wet"]


LIMITS = {"required": [("slippery", "rain")], "forbidden": [("rain", "wet"), ("wet", "rain"), ("sprinkler", "wet")]}


@pytest.mark.parametrize("structure", [PC(**LIMITS), HillClimbing(restarts=3, **LIMITS), ChowLiu(**LIMITS)], ids=repr)
def test_required_and_forbidden_edges_are_honoured(structure):
    edges = {tuple(edge) for edge in BayesianNetwork(structure=structure, random_state=0).fit(collider(0)).edges_[4:]}
    assert ("slippery", "rain") in edges
    assert edges.isdisjoint(LIMITS["forbidden"])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: HillClimbing(score="aic"), 'score must be "bic" or "bdeu"'),
        (lambda: PC(alpha=1.0), "alpha must be a number strictly between 0 and 1"),
        (lambda: PC(required=["ab"]), "required must be a list of pairs"),
        (lambda: fit(HillClimbing(required=[("a", "z")])), "names 'z', no variable"),
        (lambda: fit(HillClimbing(required=[("a", "b")], forbidden=[("a", "b")])), "required and forbidden"),
        (lambda: fit(PC(required=[("a", "b"), ("b", "c"), ("c", "a")])), "hold a cycle"),
        (lambda: fit(ChowLiu(required=[("a", "c"), ("b", "c")])), "HillClimbing"),
        (lambda: fit(ChowLiu(root="z")), "is no variable"),
        (lambda: fit("magic()"), "magic"),
        (lambda: BayesianNetwork(["a"], structure=PC()).fit({"a": [0, 1]}), "edges are given or learned"),
    ],
)
def test_what_cannot_be_learned_is_refused(make, message):
    with pytest.raises((SpecError, DataError), match=message):
        make()


def fit(structure):
    return BayesianNetwork(structure=structure).fit({name: [0, 1, 0, 1, 1] for name in "abc"})
