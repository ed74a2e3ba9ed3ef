from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.linalg import solve_discrete_are
from scipy.stats import multivariate_normal
from statsmodels.tsa.statespace.kalman_smoother import KalmanSmoother

from likely.core.errors import DataError
from likely.data.rows import Ragged
from likely.models.linear_gaussian.kalman.recursion import System, observe, run_filter, simulate
from likely.models.linear_gaussian.kalman.smoother import run_smoother, scale_trils

ALWAYS = -1.0
"""A tolerance that no difference meets: every step is computed."""


def random_system(seed, k, p, radius=0.9):
    rng = np.random.default_rng(seed)

    def covariance(size):
        root = rng.normal(size=(size, size + 1))
        return root @ root.T / size

    a = rng.normal(size=(k, k))
    a *= radius / np.abs(np.linalg.eigvals(a)).max()
    return System(
        a,
        rng.normal(size=k),
        covariance(k),
        rng.normal(size=(p, k)),
        rng.normal(size=p),
        covariance(p),
        rng.normal(size=k),
        covariance(k),
    )


def joint(system, steps):
    """Mean and covariance of all states and all observations: [z_0 … z_{T−1}, x_0 … x_{T−1}]."""
    k = len(system.transition)
    mean, source = [], []  # each state is mean + source · independent noises
    noise = np.zeros((k, k * steps))
    noise[:, :k] = np.linalg.cholesky(system.initial_covariance + 1e-300 * np.eye(k))
    now, source_now = system.initial_mean, noise
    root = np.linalg.cholesky(system.transition_covariance)
    for t in range(steps):
        mean.append(now)
        source.append(source_now)
        source_now = system.transition @ source_now
        if t + 1 < steps:
            source_now[:, k * (t + 1) : k * (t + 2)] += root
        now = system.transition @ now + system.transition_offset
    states = np.concatenate(mean)
    source = np.concatenate(source)
    look = np.kron(np.eye(steps), system.observation)
    blocks = source @ source.T
    covariance = np.block(
        [
            [blocks, blocks @ look.T],
            [look @ blocks, look @ blocks @ look.T + np.kron(np.eye(steps), system.observation_covariance)],
        ]
    )
    return np.concatenate([states, look @ states + np.tile(system.observation_offset, steps)]), covariance, k * steps


def conditioned(mean, covariance, known, values):
    """Of a joint Gaussian, given some entries: mean and covariance of all, and the log density of the known."""
    if not known.any():
        return mean, covariance, 0.0
    inner = covariance[np.ix_(known, known)]
    gain = np.linalg.solve(inner, covariance[known]).T
    away = values - mean[known]
    return (
        mean + gain @ away,
        covariance - gain @ covariance[known],
        multivariate_normal.logpdf(values, mean[known], inner),
    )


def some_missing(x, seed):
    rng = np.random.default_rng(seed)
    x = x.copy()
    x[rng.random(x.shape) < 0.25] = np.nan
    x[len(x) // 2] = np.nan
    return x


CASES = [(0, 1, 1, False), (1, 2, 1, True), (2, 2, 3, False), (3, 3, 2, True), (4, 1, 3, True), (5, 4, 2, True)]


@pytest.mark.parametrize(("seed", "k", "p", "missing"), CASES)
def test_filter_smoother_and_likelihood_are_those_of_the_joint_gaussian(seed, k, p, missing):
    steps = 6
    system = random_system(seed, k, p)
    x = np.random.default_rng(seed).normal(size=(steps, p)) * 2
    x = some_missing(x, seed) if missing else x
    mean, covariance, states = joint(system, steps)
    data = observe(Ragged.from_numpy(x, np.array([0, steps])))
    filtered = run_filter(data, system)
    smooth = run_smoother(data, system, filtered)
    for t in range(steps):
        here = slice(t * k, (t + 1) * k)
        for upto, means, covariances in (
            (t, filtered.predicted[t], filtered.gains.predicted[filtered.gains.step[t]]),
            (t + 1, filtered.means[t], filtered.gains.filtered[filtered.gains.step[t]]),
            (steps, smooth.means[t], smooth.covariance[smooth.row[t]]),
        ):
            known = np.zeros(len(mean), dtype=bool)
            known[states : states + upto * p] = ~np.isnan(x[:upto]).ravel()
            after, spread, log_prob = conditioned(mean, covariance, known, x[:upto][~np.isnan(x[:upto])])
            np.testing.assert_allclose(means, after[here], rtol=0, atol=1e-10)
            np.testing.assert_allclose(covariances, spread[here, here], rtol=0, atol=1e-10)
        if t + 1 < steps:
            ahead = slice((t + 1) * k, (t + 2) * k)
            lag = smooth.covariance[smooth.row[t + 1]] @ smooth.back[smooth.step[smooth.row[t]]].T
            np.testing.assert_allclose(lag, spread[ahead, here], rtol=0, atol=1e-10)
    np.testing.assert_allclose(filtered.log_prob, [log_prob], rtol=1e-12)


def statsmodels_smoother(system, x):
    p, k = system.observation.shape
    model = KalmanSmoother(k_endog=p, k_states=k)
    model.bind(x.copy())
    model["design"], model["obs_cov"] = system.observation, system.observation_covariance
    model["transition"], model["selection"] = system.transition, np.eye(k)
    model["state_cov"] = system.transition_covariance
    model["obs_intercept"] = system.observation_offset[:, None]
    model["state_intercept"] = system.transition_offset[:, None]
    model.initialize_known(system.initial_mean, system.initial_covariance)
    model.tolerance = 0  # it stops its own covariance recursion at a much larger change
    return model.smooth()


@pytest.mark.parametrize(("k", "p", "missing"), [(2, 1, False), (2, 1, True), (4, 2, False), (3, 3, True)])
def test_answers_are_those_of_statsmodels(k, p, missing):
    system = random_system(k + p, k, p, radius=0.97)
    x = np.random.default_rng(0).normal(size=(400, p))
    x = some_missing(x, 1) if missing else x
    peer = statsmodels_smoother(system, x)
    data = observe(Ragged.from_numpy(x, np.array([0, len(x)])))
    filtered = run_filter(data, system)
    smooth = run_smoother(data, system, filtered)
    rows = filtered.gains.step
    np.testing.assert_allclose(filtered.means, peer.filtered_state.T, rtol=0, atol=1e-8)
    np.testing.assert_allclose(
        filtered.gains.filtered[rows], np.moveaxis(peer.filtered_state_cov, 2, 0), rtol=0, atol=1e-8
    )
    np.testing.assert_allclose(smooth.means, peer.smoothed_state.T, rtol=0, atol=1e-8)
    covariances = smooth.covariance[smooth.row]
    np.testing.assert_allclose(covariances, np.moveaxis(peer.smoothed_state_cov, 2, 0), rtol=0, atol=1e-8)
    np.testing.assert_allclose(filtered.log_prob, [peer.llf], rtol=1e-10)


def level(q, r, initial=1.0):
    one, zero = np.eye(1), np.zeros(1)
    return System(one, zero, q * one, one, zero, r * one, zero, initial * one)


@pytest.mark.parametrize("ratio", [0.01, 1.0, 4.0])
def test_a_local_level_comes_to_rest_at_its_closed_form(ratio):
    """P = q/2 + √(q²/4 + qr), K = P/(P + r): the golden ratio − 1 for q = r; smoothed, r·q/√(q² + 4qr)."""
    system = level(ratio * 2.0, 2.0)
    data = observe(Ragged.from_numpy(np.zeros((3000, 1)), np.array([0, 3000])))
    filtered = run_filter(data, system)
    smooth = run_smoother(data, system, filtered)
    q, r = ratio * 2.0, 2.0
    spread = q / 2 + math.sqrt(q * q / 4 + q * r)
    np.testing.assert_allclose(filtered.gains.predicted[filtered.gains.step[1500]], [[spread]], rtol=1e-12)
    np.testing.assert_allclose(filtered.gains.gain[filtered.gains.step[1500]], [[spread / (spread + r)]], rtol=1e-12)
    np.testing.assert_allclose(
        smooth.covariance[smooth.row[1500]], [[r * q / math.sqrt(q * q + 4 * q * r)]], rtol=1e-12
    )
    if ratio == 1.0:
        np.testing.assert_allclose(filtered.gains.gain[-1], [[(math.sqrt(5) - 1) / 2]], rtol=1e-14)


def test_the_steady_covariance_solves_the_riccati_equation():
    system = random_system(7, 4, 2)
    filtered = run_filter(observe(Ragged.from_numpy(np.zeros((1000, 2)), np.array([0, 1000]))), system)
    solved = solve_discrete_are(
        system.transition.T, system.observation.T, system.transition_covariance, system.observation_covariance
    )
    np.testing.assert_allclose(filtered.gains.predicted[-1], solved, rtol=0, atol=1e-11)
    assert len(filtered.gains.predicted) < 200


def trend(level_noise, slope_noise, noise=1.0):
    a, zero = np.array([[1.0, 1.0], [0.0, 1.0]]), np.zeros(2)
    c, q = np.array([[1.0, 0.0]]), np.diag([level_noise, slope_noise])
    return System(a, zero, q, c, np.zeros(1), noise * np.eye(1), zero, 1e6 * np.eye(2))


@pytest.mark.parametrize(
    ("system", "gaps"),
    [
        (level(1.0, 1.0, 1e6), 0.0),
        (level(1e-6, 1.0, 1e6), 0.0),
        (trend(0.1, 0.01), 0.002),
        (trend(1e-3, 1e-6), 0.0),
        (trend(0.0, 1e-4), 0.001),
        (trend(0.0, 0.0), 0.0),
        (random_system(3, 4, 1, 0.99), 0.001),
    ],
    ids=["level", "slow level", "trend", "slow trend", "smooth trend", "line", "random"],
)
def test_steps_at_rest_change_nothing(system, gaps):
    """Reusing a gain that no longer moves gives what the full recursion gives, to ten digits."""
    rng = np.random.default_rng(0)
    x = np.cumsum(rng.normal(size=(15_000, 1)), 0)
    x[rng.random(len(x)) < gaps] = np.nan
    data = observe(Ragged.from_numpy(x, np.array([0, 9000, 15_000])))
    for_short, for_long = run_filter(data, system), run_filter(data, system, ALWAYS)
    short = run_smoother(data, system, for_short)
    whole = run_smoother(data, system, for_long, ALWAYS)
    assert len(for_short.gains.gain) <= len(for_long.gains.gain)
    size = np.abs(whole.means).max(0)
    np.testing.assert_allclose(short.means / size, whole.means / size, rtol=0, atol=1e-10)
    np.testing.assert_allclose(for_short.means / size, for_long.means / size, rtol=0, atol=1e-10)
    deviation = np.sqrt(np.diagonal(whole.covariance, axis1=1, axis2=2))[whole.row]
    difference = np.abs(short.covariance[short.row] - whole.covariance[whole.row])
    assert (difference <= 1e-10 * deviation[:, :, None] * deviation[:, None, :]).all()
    np.testing.assert_allclose(for_short.log_prob, for_long.log_prob, rtol=1e-11)


def test_many_sequences_share_their_steps_and_are_filtered_apart():
    system = random_system(5, 3, 2)
    lengths = np.random.default_rng(0).integers(1, 90, size=300)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    x = np.random.default_rng(1).normal(size=(starts[-1], 2))
    data = observe(Ragged.from_numpy(x, starts))
    together = run_filter(data, system)
    smooth = run_smoother(data, system, together)
    assert len(together.gains.gain) <= 90
    for i in (0, 17, 299):
        own = slice(starts[i], starts[i + 1])
        alone = observe(Ragged.from_numpy(x[own], np.array([0, lengths[i]])))
        filtered = run_filter(alone, system)
        smoothed = run_smoother(alone, system, filtered)
        np.testing.assert_allclose(together.log_prob[i], filtered.log_prob[0], rtol=1e-12)
        np.testing.assert_allclose(smooth.means[own], smoothed.means, rtol=0, atol=1e-12)
        covariances = smoothed.covariance[smoothed.row]
        np.testing.assert_allclose(smooth.covariance[smooth.row[own]], covariances, rtol=0, atol=1e-12)


def test_states_that_others_determine_need_no_inverse():
    """Two copies of one state: the covariance is singular, the answers are those of the one."""
    single = level(0.5, 1.0)
    ones, zero = np.ones((2, 2)), np.zeros(2)
    half = np.array([[0.5, 0.5]])
    double = System(np.eye(2), zero, 0.5 * ones, half, np.zeros(1), np.eye(1), zero, ones)
    x = np.random.default_rng(0).normal(size=(50, 1))
    x[20:23] = np.nan
    data = observe(Ragged.from_numpy(x, np.array([0, 50])))
    one, two = run_filter(data, single), run_filter(data, double)
    np.testing.assert_allclose(two.log_prob, one.log_prob, rtol=1e-12)
    alone, copies = run_smoother(data, single, one), run_smoother(data, double, two)
    np.testing.assert_allclose(copies.means, np.repeat(alone.means, 2, axis=1), rtol=0, atol=1e-12)
    spread = alone.covariance[alone.row] * ones
    np.testing.assert_allclose(copies.covariance[copies.row], spread, rtol=0, atol=1e-12)


def test_a_million_steps_stay_finite_and_share_their_gains():
    system = random_system(1, 2, 1, radius=0.999)
    x = np.random.default_rng(0).normal(size=(1_000_000, 1))
    data = observe(Ragged.from_numpy(x, np.array([0, len(x)])))
    filtered = run_filter(data, system)
    assert np.isfinite(filtered.log_prob).all()
    assert len(filtered.gains.gain) < 20_000
    # a filter does not look ahead
    quarter = run_filter(observe(Ragged.from_numpy(x[:250_000], np.array([0, 250_000]))), system)
    np.testing.assert_allclose(filtered.means[:250_000], quarter.means, rtol=0, atol=0)


def test_covariances_stay_covariances_under_very_different_variances():
    system = trend(1e-9, 1e-12, noise=1e-8)
    data = observe(Ragged.from_numpy(np.random.default_rng(0).normal(size=(2000, 1)), np.array([0, 2000])))
    filtered = run_filter(data, system)
    smooth = run_smoother(data, system, filtered)
    for table in (filtered.gains.predicted, filtered.gains.filtered, smooth.covariance):
        values = np.linalg.eigvalsh(table)
        assert (values >= -1e-12 * values[:, -1:]).all()


@pytest.mark.parametrize("size", [3, 20, 70])
def test_patterns_of_missing_values_are_found(size):
    x = np.random.default_rng(0).normal(size=(60, size))
    x[np.random.default_rng(1).random(x.shape) < 0.1] = np.nan
    data = observe(Ragged.from_numpy(x, np.array([0, 60])))
    np.testing.assert_array_equal(data.seen[data.pattern], ~np.isnan(x))
    assert len(np.unique(data.seen, axis=0)) == len(data.seen)


def test_an_observation_without_a_density_is_refused_with_its_row():
    system = level(0.0, 0.0, 0.0)
    with pytest.raises(DataError, match=r"observation at row 0 has no density .* observation_covariance a positive"):
        run_filter(observe(Ragged.from_numpy(np.zeros((3, 1)), np.array([0, 3]))), system)
    exploding = level(1.0, 1.0)._replace(transition=np.array([[1e200]]))
    x = np.array([[0.0], [np.nan], [np.nan], [0.0]])
    with pytest.raises(DataError, match=r"row 3 has no density .* singular or not finite"):
        run_filter(observe(Ragged.from_numpy(x, np.array([0, 4]))), exploding)


def test_simulated_states_follow_the_transition():
    system = random_system(2, 3, 1)
    noise = np.random.default_rng(0).normal(size=(40, 3))
    states = simulate(system.transition, system.transition_offset, np.ones(3), noise)
    np.testing.assert_array_equal(states[0], np.ones(3))
    expected = states[:-1] @ system.transition.T + system.transition_offset + noise
    np.testing.assert_allclose(states[1:], expected, rtol=0, atol=1e-12)


def test_roots_of_singular_covariances_give_them_back():
    covariances = np.stack([np.ones((3, 3)), np.diag([1.0, 0.0, 2.0]), np.zeros((3, 3)), np.eye(3) + 0.5])
    roots = scale_trils(covariances)
    np.testing.assert_allclose(roots @ roots.mT, covariances, rtol=0, atol=1e-14)
    assert (np.triu(roots, 1) == 0).all()
