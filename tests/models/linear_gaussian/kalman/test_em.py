"""EM for state spaces: its moments and its M-step, from the joint distribution of all steps."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from likely.data.rows import Ragged
from likely.models.linear_gaussian.kalman.em import StateSpace, moments
from likely.models.linear_gaussian.kalman.recursion import System, observe, run_filter

WEIGHT = np.array([2.0, 0.5])


def expected_moments(system, joint_of, x, starts):
    """Σ weight · E[w z̃ᵀ], E[w wᵀ], E[z̃ z̃ᵀ] of w = z' − A z − b, and the same of the first state."""
    noise, cross, states = np.zeros((2, 2)), np.zeros((2, 3)), np.zeros((3, 3))
    away, square = np.zeros(2), np.zeros((2, 2))
    for weight, begin, end in zip(WEIGHT, starts[:-1], starts[1:], strict=True):
        mean, covariance = joint_of(system, end - begin).given(x[begin:end])
        second = covariance + np.outer(mean, mean)
        gap = mean[:2] - system.initial_mean
        away += weight * gap
        square += weight * (covariance[:2, :2] + np.outer(gap, gap))
        for t in range(end - begin - 1):
            pick = np.zeros((5, len(mean)))  # z, z' of [z, z', 1]
            pick[:4, 2 * t : 2 * t + 4] = np.eye(4)
            both = pick @ second @ pick.T
            both[:, 4] = both[4] = pick @ mean
            both[4, 4] = 1.0
            to_w = np.hstack([-system.transition, np.eye(2), -system.transition_offset[:, None]])
            to_z = np.eye(5)[[0, 1, 4]]
            noise += weight * to_w @ both @ to_w.T
            cross += weight * to_w @ both @ to_z.T
            states += weight * to_z @ both @ to_z.T
    return {
        "transition_noise": noise,
        "transition_cross": cross,
        "transition_states": states,
        "initial_away": away,
        "initial_square": square,
    }


def test_moments_are_those_of_the_joint_distribution(make_system, joint_of, holes):
    system, data = make_system(), observe(Ragged.from_numpy(*holes))
    sums, value = moments(data, system, WEIGHT)
    assert value == pytest.approx(WEIGHT @ run_filter(data, system).log_prob, rel=1e-12)
    for name, expected in expected_moments(system, joint_of, *holes).items():
        np.testing.assert_allclose(sums[name], expected, rtol=1e-7, atol=1e-8, err_msg=name)
    assert (sums["transition_count"], sums["initial_count"]) == (2.0 * 4 + 0.5 * 3, 2.5)


def test_the_m_step_is_least_squares_of_states(make_system, joint_of, holes):
    """[A b] = E[z' z̃ᵀ] E[z̃ z̃ᵀ]⁻¹ and Q the mean square of what is left."""
    x, starts = holes
    system = make_system()
    learn = frozenset({"transition", "transition_offset", "transition_covariance", "initial_mean"})
    model = StateSpace(observe(Ragged.from_numpy(x, starts)), system._asdict(), learn, 2, diagonal=False, weight=WEIGHT)
    params = {name: torch.from_numpy(getattr(system, name))[None] for name in System._fields}
    new = {name: value[0].numpy() for name, value in model.maximise(params, model.expect(params)[0]).items()}
    sums = expected_moments(system, joint_of, x, starts)
    before = np.column_stack([system.transition, system.transition_offset])
    after = before + sums["transition_cross"] @ np.linalg.inv(sums["transition_states"])
    np.testing.assert_allclose(np.column_stack([new["transition"], new["transition_offset"]]), after, rtol=1e-6)
    change = after - before
    rest = sums["transition_noise"] - change @ sums["transition_cross"].T
    np.testing.assert_allclose(new["transition_covariance"], rest / 9.5, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(new["initial_mean"], system.initial_mean + sums["initial_away"] / 2.5, rtol=1e-8)
    for name in set(System._fields) - learn:
        np.testing.assert_array_equal(new[name], getattr(system, name))


@pytest.mark.parametrize("diagonal", [False, True], ids=["full", "diagonal"])
def test_no_step_lowers_the_likelihood(make_system, holes, diagonal):
    given = dict.fromkeys(System._fields)
    learn = frozenset(System._fields)
    x = np.concatenate([holes[0], np.random.default_rng(2).normal(size=(20, 2))])
    model = StateSpace(observe(Ragged.from_numpy(x, np.array([0, 5, 9, 29]))), given, learn, 2, diagonal)
    params, values = model.start([0, 1]), []
    for _ in range(8):
        statistics, value = model.expect(params)
        values.append(value.numpy())
        params = model.maximise(params, statistics)
    rises = np.diff(np.stack(values), axis=0)
    assert (rises > -1e-8).all()
    assert (rises[0] > 0.01).all()


def test_the_density_of_free_parameters_is_the_value_of_em(make_system, holes):
    model = StateSpace(
        observe(Ragged.from_numpy(*holes)), make_system()._asdict(), frozenset(System._fields), 2, False, WEIGHT
    )
    params = model.start([0])
    x, weight = model.rows()
    torch.testing.assert_close(weight @ model.row_log_prob(params, x), model.expect(params)[1], rtol=1e-9, atol=1e-9)
    for name, value in model.from_free(model.to_free(params)).items():
        torch.testing.assert_close(value, params[name], rtol=1e-9, atol=1e-9)
