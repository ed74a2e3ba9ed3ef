"""Questions about one piece of evidence: how their answers hang together, and what an error of them shows."""

from __future__ import annotations

import math

import pytest

from likely import BayesianNetwork
from likely.core.errors import DataError
from likely.models.bayesian_network import evidence_questions
from likely.models.bayesian_network.evidence_questions import EvidenceQuestions, listed

EDGES = [("rain", "wet"), ("sprinkler", "wet"), ("wet", "slip")]
TABLES = {
    "rain": [0.8, 0.2],
    "sprinkler": [0.6, 0.4],
    "wet": [[[1.0, 0.0], [0.2, 0.8]], [[0.3, 0.7], [0.05, 0.95]]],
    "slip": [[0.99, 0.01], [0.6, 0.4]],
}
MODEL = BayesianNetwork.from_tables(EDGES, TABLES)


def test_joint_tables_sum_to_the_marginals():
    """Σ_b p(a, b | e) = p(a | e), whichever variable is summed out, also where the evidence is about one of them."""
    for evidence in ({}, {"slip": 1}, {"wet": 1}):
        joint, marginals = MODEL.joint(["sprinkler", "wet"], evidence), MODEL.marginals(evidence)
        for place, name in enumerate(("sprinkler", "wet")):
            for state in (0, 1):
                summed = sum(p for states, p in joint.items() if states[place] == state)
                assert summed == pytest.approx(marginals[name][state], abs=1e-12)


def test_one_more_fact_is_bayes_rule():
    """log p(e, x) − log p(e) = log p(x | e)."""
    for state in (0, 1):
        gain = MODEL.evidence_log_prob({"slip": 1, "rain": state}) - MODEL.evidence_log_prob({"slip": 1})
        assert math.exp(gain) == pytest.approx(MODEL.marginals({"slip": 1})["rain"][state], rel=1e-12)


def test_soft_evidence_of_one_state_is_evidence():
    """A weight on one state alone is to know it; equal weights are to know nothing."""
    hard, soft = MODEL.marginals({"wet": 1}), MODEL.marginals(soft={"wet": {1: 0.7}})
    even, nothing = MODEL.marginals(soft={"wet": {0: 5.0, 1: 5.0}}), MODEL.marginals()
    for name in TABLES:
        assert soft[name] == pytest.approx(hard[name], abs=1e-12)
        assert even[name] == pytest.approx(nothing[name], abs=1e-12)
    gap = MODEL.evidence_log_prob(soft={"wet": {1: 0.7}}) - MODEL.evidence_log_prob({"wet": 1})
    assert gap == pytest.approx(math.log(0.7), rel=1e-12)


def test_the_best_explanation_is_the_largest_entry_of_the_joint_table():
    evidence = {"slip": 1}
    best = MODEL.most_probable(evidence)
    names = list(best.assignment)
    joint = MODEL.joint(names, evidence)
    states = tuple(best.assignment[name] for name in names)
    assert joint[states] == max(joint.values())
    assert best.probability == pytest.approx(joint[states], rel=1e-12)
    assert best.log_prob == pytest.approx(MODEL.evidence_log_prob(best.assignment), rel=1e-12)


@pytest.mark.parametrize("question", ["marginals", "most_probable"])
def test_impossible_evidence_is_shown(question):
    with pytest.raises(
        DataError, match=r"probability zero: rain=0, sprinkler=0, wet=1\. Check it, or fit with smoothing > 0"
    ):
        getattr(MODEL, question)({"rain": 0, "sprinkler": 0, "wet": 1})
    with pytest.raises(DataError, match=r"probability zero: rain=0, sprinkler=0, soft wet\."):
        getattr(MODEL, question)({"rain": 0, "sprinkler": 0}, {"wet": {1: 1.0}})


def test_joint_tables_are_of_different_variables_and_fit_into_memory(monkeypatch):
    with pytest.raises(DataError, match=r"names must be different variables, at least one; found \['wet', 'wet'\]"):
        MODEL.joint(["wet", "wet"])
    monkeypatch.setattr(evidence_questions, "LARGEST", 7)
    with pytest.raises(DataError, match="The joint table of 3 variables has 8 entries; ask for fewer"):
        MODEL.joint(["rain", "wet", "slip"])


def test_much_evidence_is_shown_in_part():
    assert listed({f"x{i}": i for i in range(9)}) == ", ".join(f"x{i}={i}" for i in range(8)) + ", …"


def test_a_model_must_say_its_states_and_its_inference():
    with pytest.raises(NotImplementedError, match="EvidenceQuestions must name its states"):
        EvidenceQuestions().marginals()
    with pytest.raises(NotImplementedError, match="EvidenceQuestions must give its inference"):
        _ = EvidenceQuestions()._inference
