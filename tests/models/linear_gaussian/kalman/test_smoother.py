"""Smoothed states against the joint distribution of all steps."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from likely.data.rows import Ragged
from likely.models.linear_gaussian.kalman.recursion import observe, run_filter
from likely.models.linear_gaussian.kalman.smoother import run_smoother, scale_trils


@pytest.mark.parametrize("steady", [1e-14, -1.0], ids=["shared", "each"])
def test_moments_are_those_of_the_joint_distribution(make_system, joint_of, holes, steady):
    x, starts = holes
    system, data = make_system(), observe(Ragged.from_numpy(*holes))
    smooth = run_smoother(data, system, run_filter(data, system), steady)
    for begin, end in itertools.pairwise(starts):
        mean, covariance = joint_of(system, end - begin).given(x[begin:end])
        for t in range(begin, end):
            here = slice(2 * (t - begin), 2 * (t - begin) + 2)
            row = smooth.row[t]
            np.testing.assert_allclose(smooth.means[t], mean[here], rtol=1e-8, atol=1e-9)
            np.testing.assert_allclose(smooth.covariance[row], covariance[here, here], rtol=1e-8, atol=1e-10)
            if t + 1 == end:
                assert smooth.after[row] == -1
                continue
            after = slice(here.start + 2, here.stop + 2)
            across = smooth.covariance[smooth.after[row]] @ smooth.back[smooth.step[row]].T  # Cov(z_{t+1}, z_t | x)
            np.testing.assert_allclose(across, covariance[after, here], rtol=1e-8, atol=1e-10)


def test_a_state_that_others_determine_is_smoothed_too(make_system, joint_of):
    """z₂ repeats the last z₁: Q is singular, and z₁ is known once it has become z₂."""
    system = make_system()._replace(
        transition=np.array([[0.9, 0.0], [1.0, 0.0]]),
        transition_offset=np.zeros(2),
        transition_covariance=np.diag([1.0, 0.0]),
    )
    x = np.random.default_rng(1).normal(size=(6, 2))
    data = observe(Ragged.from_numpy(x, np.array([0, 6])))
    smooth = run_smoother(data, system, run_filter(data, system))
    np.testing.assert_allclose(smooth.means[1:, 1], smooth.means[:-1, 0], rtol=1e-9, atol=1e-10)
    mean, covariance = joint_of(system, 6).given(x)
    np.testing.assert_allclose(smooth.means.ravel(), mean[:12], rtol=1e-7, atol=1e-8)
    expected = np.stack([covariance[i : i + 2, i : i + 2] for i in range(0, 12, 2)])
    np.testing.assert_allclose(smooth.covariance[smooth.row], expected, rtol=1e-7, atol=1e-8)


def test_roots_of_singular_covariances_are_roots():
    random = np.random.default_rng(0)
    roots = random.normal(size=(3, 4, 2))
    covariances = np.concatenate([roots @ roots.swapaxes(1, 2), np.zeros((1, 4, 4)), np.eye(4)[None]])
    lower = scale_trils(covariances)
    np.testing.assert_allclose(lower @ lower.swapaxes(1, 2), covariances, atol=1e-12)
    assert not np.triu(lower, 1).any()
