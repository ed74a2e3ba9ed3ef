"""Messages in a clique tree against the joint table, in plain numbers and in logarithms."""

from __future__ import annotations

import math

import numpy as np
import pytest

from likely.models.bayesian_network.exact import ExactInference
from likely.models.bayesian_network.propagate import TINY, absorb, collect, collect_logs, draw, maximise

CODES = np.array([[-1, -1, -1, -1, -1], [0, -1, 1, -1, -1], [-1, 1, -1, 0, 1], [1, 1, 0, 1, 0]])


@pytest.fixture
def prepared(network, enumeration):
    tables, vector = network(seed=7, count=5)
    rng = np.random.default_rng(0)
    soft = rng.uniform(0.1, 1.0, sum(tables.sizes))
    return tables, ExactInference(tables, vector), enumeration(tables, vector), soft


def test_absorb_sums_over_all_states(prepared):
    tables, inference, oracle, soft = prepared
    use, weights = np.ones(5, np.bool_), np.array([1.0, 2.0, 0.5, 3.0])
    marginals, counts = np.zeros((len(CODES), len(soft))), np.zeros(tables.start[-1])
    arrays = (inference.potentials, inference.logs, CODES, weights, soft, use, marginals, counts)
    evidence, _ = absorb(inference.plan, *arrays)
    joints = [oracle.given(codes, soft) for codes in CODES]
    np.testing.assert_allclose(evidence, [math.log(joint.sum()) for joint in joints], rtol=1e-12)
    np.testing.assert_allclose(marginals, [oracle.marginals(codes, soft) for codes in CODES], rtol=1e-10, atol=1e-14)
    expected = sum(w * joint / joint.sum() for w, joint in zip(weights, joints, strict=True))
    for variable, table in enumerate(tables.split(counts)):
        family = tables.dag.family(variable)
        summed = expected.sum(tuple(v for v in range(5) if v not in family))
        np.testing.assert_allclose(table, summed.transpose(np.argsort(np.argsort(family))), rtol=1e-10, atol=1e-14)


def test_logarithms_leave_what_plain_numbers_leave(prepared):
    _, inference, _, soft = prepared
    plan, use = inference.plan, np.ones(5, np.bool_)
    plain, logs, message = np.empty_like(inference.potentials), inference.logs.copy(), np.empty(plan.rows.max())
    value = collect(plan, inference.potentials, inference.logs, CODES[1], soft, use, plain, message)
    assert collect_logs(plan, logs, CODES[1], soft, use, message, False) == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(np.exp(logs), plain, rtol=1e-10, atol=1e-14)


def test_evidence_below_what_float64_holds_is_collected_in_logarithms(prepared):
    _, inference, oracle, soft = prepared
    tiny = soft * TINY  # of five variables: e⁻³²⁰⁰
    evidence, _ = absorb(
        inference.plan,
        *(inference.potentials, inference.logs, CODES[:1], np.zeros(0), tiny, np.ones(5, np.bool_)),
        *(np.zeros((0, 1)), np.zeros(0)),
    )
    expected = math.log(oracle.given(CODES[0], soft).sum()) + 5 * math.log(TINY)
    assert evidence[0] == pytest.approx(expected, rel=1e-12)


def test_maximise_finds_the_largest_entry_of_the_joint(prepared):
    _, inference, oracle, soft = prepared
    for row in range(len(CODES)):
        best, states = maximise(inference.plan, inference.logs, CODES[row : row + 1], soft, np.ones(5, np.bool_))
        joint = oracle.given(CODES[row], soft)
        assert states.tolist() == list(np.unravel_index(joint.argmax(), joint.shape))
        assert best == pytest.approx(math.log(joint.max()), rel=1e-12)


def test_draws_have_possible_states_at_both_ends_of_the_unit_interval(prepared):
    _, inference, oracle, _ = prepared
    evidence, conditional = inference._absorb(CODES[1:2], None)
    ends = np.stack([np.zeros(len(inference.plan.rows)), np.full(len(inference.plan.rows), np.nextafter(1, 0))])
    for states in draw(inference.plan, conditional, ends):
        assert oracle.given(CODES[1])[tuple(states)] > 0
    assert np.isfinite(evidence).all()
