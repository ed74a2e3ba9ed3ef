"""Graphs from data: what each method guarantees, and what it finds in rows of known networks."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import likely
from likely import BayesianNetwork
from likely.core.errors import DataError, LikelyWarning, SpecError
from likely.models.bayesian_network import PC, ChowLiu, Dag, HillClimbing, structural_hamming_distance
from likely.models.bayesian_network.structure.hill_climbing import FamilyScore
from likely.models.bayesian_network.structure.sample import Sample

NAMES = list("abcde")


def draw(network, seed, count=500, variables=5):
    tables, vector = network(seed, variables)
    codes = tables.ancestral(vector, count, np.random.default_rng(seed))
    return Sample.of(NAMES[:variables], codes, np.ones(count), tables.sizes)


def names_of(edges):
    return [*NAMES, *((NAMES[parent], NAMES[child]) for parent, child in edges)]


def parents_of(edges, count=5):
    return [frozenset(parent for parent, own in edges if own == child) for child in range(count)]


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


@pytest.mark.parametrize("rows", [None, 2.5])
def test_graphs_of_the_same_independences_have_the_same_score(network, rows):
    """All 543 graphs of 4 variables, grouped by their equivalence class; scores of other classes differ."""
    score = FamilyScore(draw(network, 1, 300, 4), rows)
    classes: dict[bytes, list[float]] = {}
    pairs = list(itertools.combinations(range(4), 2))
    from likely.models.bayesian_network.structure.equivalence import equivalence_class

    for ways in itertools.product(range(3), repeat=6):
        edges = [pair[:: 1 if way == 1 else -1] for pair, way in zip(pairs, ways, strict=True) if way]
        try:
            dag = Dag.from_edges([*NAMES[:4], *((NAMES[a], NAMES[b]) for a, b in edges)])
        except SpecError:
            continue
        marks = equivalence_class(dag.parents).tobytes()
        classes.setdefault(marks, []).append(score.total(parents_of(edges, 4)))
    assert (len(classes), sum(map(len, classes.values()))) == (185, 543)  # as is known of 4 variables
    for own in classes.values():
        assert own == pytest.approx([own[0]] * len(own), rel=1e-10)
    assert len({round(own[0], 6) for own in classes.values()}) > 100


@pytest.mark.parametrize("score", ["bic", "bdeu"])
def test_hill_climbing_never_goes_down_and_ends_at_a_top(network, score):
    """The score is the sum over variables, and no single change of an edge of the best graph raises it."""
    sample = draw(network, 2)
    climb = HillClimbing(score, restarts=3, tabu=2).climb(sample, np.random.default_rng(0))
    assert (np.diff(climb.history) >= 0).all()
    family = climb.score
    assert family.total(parents_of(climb.edges)) == pytest.approx(climb.history[-1], rel=1e-10)
    for parent, child in itertools.permutations(range(5), 2):
        parents = parents_of(climb.edges)
        if parent in parents[child]:
            parents[child] -= {parent}
        else:
            parents[child] |= {parent}
            parents[parent] -= {child}
        edges = [(a, b) for b, own in enumerate(parents) for a in own]
        try:
            Dag.from_edges(names_of(edges))
        except SpecError:
            continue
        assert family.total(parents) <= climb.history[-1] + 1e-8


def test_hill_climbing_finds_the_best_of_all_graphs(network):
    """Of the 543 graphs of 4 variables."""
    sample = draw(network, 3, 400, 4)
    climb = HillClimbing("bdeu", restarts=20).climb(sample, np.random.default_rng(0))
    best = -np.inf
    pairs = list(itertools.combinations(range(4), 2))
    for ways in itertools.product(range(3), repeat=6):
        edges = [pair[:: 1 if way == 1 else -1] for pair, way in zip(pairs, ways, strict=True) if way]
        try:
            Dag.from_edges(["a", *((NAMES[a], NAMES[b]) for a, b in edges)])
        except SpecError:
            continue
        best = max(best, climb.score.total(parents_of(edges, 4)))
    assert climb.history[-1] == pytest.approx(best, rel=1e-10)


def collider(seed, count=3000):
    """rain → wet ← sprinkler, wet → slippery; independences that fail by chance at a rate of about 3 · 1e-4."""
    rng = np.random.default_rng(seed)
    rain, sprinkler = rng.random((2, count)) < 0.5
    wet = (rain | sprinkler) ^ (rng.random(count) < 0.1)
    return {"rain": rain, "sprinkler": sprinkler, "wet": wet, "slippery": wet ^ (rng.random(count) < 0.2)}


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


def test_a_learned_network_is_a_network(tmp_path):
    """It answers, is saved with its edges, and a repeated fit is the same."""
    rows = collider(1, 400)
    model = BayesianNetwork(structure="chow_liu(root='wet')", smoothing=1.0).fit(rows)
    assert model.factorisation().startswith("p(wet)")
    model.save(tmp_path / "m.likely")
    np.testing.assert_array_equal(likely.load(tmp_path / "m.likely").log_prob(rows), model.log_prob(rows))
    climbed = [BayesianNetwork(random_state=3).fit(rows).edges_ for _ in range(2)]
    assert climbed[0] == climbed[1]
    array = np.column_stack(list(rows.values()))
    assert BayesianNetwork(structure=ChowLiu()).fit(array).names_ == ["x0", "x1", "x2", "x3"]
    assert BayesianNetwork().fit({"a": [0, 1, 1], "b": ["x", "x", "x"]}, sample_weight=[1, 2, 0]).names_ == ["a", "b"]


def test_rows_with_gaps_do_not_count_for_edges():
    rows = collider(2, 1000)
    holes = {
        name: [None if place % 10 == 0 else value for place, value in enumerate(own)] for name, own in rows.items()
    }
    whole = {name: own[np.arange(1000) % 10 > 0] for name, own in rows.items()}
    with pytest.warns(LikelyWarning, match="learned from the 900 of 1000 rows that have no gaps"):
        model = BayesianNetwork(structure=ChowLiu()).fit(holes)
    assert model.edges_ == BayesianNetwork(structure=ChowLiu()).fit(whole).edges_


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
        (lambda: BayesianNetwork().fit({"a": np.arange(300)}), "300 different values"),
        (lambda: BayesianNetwork().fit({"a": [0, None], "b": [None, 1]}), "rows without gaps"),
    ],
)
def test_what_cannot_be_learned_is_refused(make, message):
    with pytest.raises((SpecError, DataError), match=message):
        make()


def fit(structure):
    return BayesianNetwork(structure=structure).fit({name: [0, 1, 0, 1, 1] for name in "abc"})


@pytest.mark.parametrize("network_name", ["asia"])
def test_asia_is_found_in_its_rows(shared_data, network_name):
    """No further from the truth than one search without restarts of a peer (5 of 8 edges); mostly 0 or 1."""
    model = BayesianNetwork.from_bif(shared_data / f"{network_name}.bif")
    learned = BayesianNetwork(smoothing=1.0, random_state=0).fit(model.sample(5000, random_state=0))
    assert structural_hamming_distance(learned.edges_, model.edges_) <= 2
