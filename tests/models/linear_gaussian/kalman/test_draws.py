"""Expected and drawn series against the joint distribution of all steps."""

from __future__ import annotations

import itertools

import numpy as np

from likely.data.rows import Ragged
from likely.models.linear_gaussian.kalman.draws import draw_series, expected_rows, filled_rows
from likely.models.linear_gaussian.kalman.recursion import observe


class Scripted:
    """A generator whose normal numbers are these, one after the other, and 0 after the last."""

    def __init__(self, *numbers):
        self.numbers = list(numbers)

    def normal(self, size):
        count = int(np.prod(size))
        chosen, self.numbers = self.numbers[:count], self.numbers[count:]
        return np.array(chosen + [0.0] * (count - len(chosen))).reshape(size)


def test_expected_rows_are_those_of_the_joint_distribution(make_system, joint_of, holes):
    x, starts = holes
    system = make_system()
    values = expected_rows(observe(Ragged.from_numpy(x, starts)), system)
    for begin, end in itertools.pairwise(starts):
        joint = joint_of(system, end - begin)
        mean = joint.given(x[begin:end])[0][joint.states :]
        np.testing.assert_allclose(values[begin:end].ravel(), mean, rtol=1e-8, atol=1e-9)


def test_draws_without_noise_are_the_means(make_system, joint_of, holes):
    """Matheron's rule moves the prior mean to the conditional one."""
    system, data = make_system(), observe(Ragged.from_numpy(*holes))
    np.testing.assert_allclose(filled_rows(data, system, Scripted()), expected_rows(data, system), rtol=1e-9)
    rows, states = draw_series(system, system.initial_mean, system.initial_covariance, (1, 4), Scripted())
    joint = joint_of(system, 4)
    np.testing.assert_allclose(states.ravel(), joint.mean[: joint.states], rtol=1e-10)
    np.testing.assert_allclose(rows.ravel(), joint.mean[joint.states :], rtol=1e-10)


def test_drawn_rows_have_the_conditional_covariance(make_system, joint_of, holes):
    """A draw is affine in the normal numbers it uses: their coefficients M have MMᵀ as covariance."""
    x = holes[0][:5]
    system, data, missing = make_system(), observe(Ragged.from_numpy(x, np.array([0, 5]))), np.isnan(x)
    centre, numbers = expected_rows(data, system), 2 + 4 * 2 + 5 * 2  # first state, moves, observations
    draws = [filled_rows(data, system, Scripted(*unit)) for unit in np.eye(numbers)]
    coefficients = np.stack([(draw - centre)[missing] for draw in draws], 1)
    for draw in draws:
        np.testing.assert_array_equal(draw[~missing], x[~missing])
    joint = joint_of(system, 5)
    gone = joint.states + np.flatnonzero(missing.ravel())
    expected = joint.given(x)[1][np.ix_(gone, gone)]
    np.testing.assert_allclose(coefficients @ coefficients.T, expected, rtol=1e-8, atol=1e-10)
