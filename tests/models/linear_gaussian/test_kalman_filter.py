from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from statsmodels.tsa.statespace.structural import UnobservedComponents

from likely import KalmanFilter
from likely.core.errors import ConvergenceWarning
from likely.data.rows import Ragged
from likely.inference import EM
from likely.models.linear_gaussian.kalman.em import StateSpace, moments
from likely.models.linear_gaussian.kalman.recursion import System, observe

MATRICES = {
    "transition": [[0.9, 0.2], [-0.2, 0.8]],
    "observation": [[1.0, 0.0], [0.5, 1.0], [0.0, -1.0]],
    "transition_covariance": [[0.3, 0.1], [0.1, 0.2]],
    "observation_covariance": [0.5, 0.4, 0.3],
    "initial_mean": [1.0, -1.0],
    "initial_covariance": 1.0,
    "observation_offset": [5.0, 0.0, -3.0],
}


def known(**changes):
    """A model of which everything is known."""
    return KalmanFilter(**MATRICES | changes).fit(np.zeros((2, 3)))


def drawn(steps=200, seed=0, missing=0.0, model=None):
    x = (model or known()).sample(random_state=seed, length=steps)[0]
    x[np.random.default_rng(seed).random(x.shape) < missing] = np.nan
    return x


def quiet(**arguments):
    """EM that runs its steps without a word."""
    return EM(tol=0.0, **arguments)


# --- one step of EM against the moments of the joint Gaussian ---------------------------------------------------------


def posterior_of_everything(system, x):
    """Mean and covariance of all states and all observations of one series, given the observations that are known."""
    steps = len(x)
    k = len(system.transition)
    mean, source = [], []
    now, roots = system.initial_mean, np.zeros((k, k * steps))
    roots[:, :k] = np.linalg.cholesky(system.initial_covariance)
    for t in range(steps):
        mean.append(now)
        source.append(roots)
        roots = system.transition @ roots
        if t + 1 < steps:
            roots[:, k * (t + 1) : k * (t + 2)] += np.linalg.cholesky(system.transition_covariance)
        now = system.transition @ now + system.transition_offset
    mean, source = np.concatenate(mean), np.concatenate(source)
    look = np.vstack([np.eye(k * steps), np.kron(np.eye(steps), system.observation)])
    covariance = look @ source @ source.T @ look.T
    covariance[k * steps :, k * steps :] += np.kron(np.eye(steps), system.observation_covariance)
    mean = look @ mean
    mean[k * steps :] += np.tile(system.observation_offset, steps)
    seen = np.concatenate([np.zeros(k * steps, dtype=bool), ~np.isnan(x).ravel()])
    gain = np.linalg.solve(covariance[np.ix_(seen, seen)], covariance[seen]).T
    return mean + gain @ (x[~np.isnan(x)] - mean[seen]), covariance - gain @ covariance[seen]


def textbook_step(system, parts):
    """Maximum likelihood from moments of the complete data: regressions of z_{t+1} and of x_t on [z_t, 1]."""
    k, p = len(system.transition), len(system.observation)
    moving, seeing = np.zeros((2 * k + 1, 2 * k + 1)), np.zeros((p + k + 1, p + k + 1))
    moves = sights = 0
    firsts = []
    for x in parts:
        steps = len(x)
        mean, covariance = posterior_of_everything(system, x)
        second = covariance + np.outer(mean, mean)
        full = np.block([[second, mean[:, None]], [mean[None], np.ones((1, 1))]])
        one = len(mean)
        firsts.append((mean[:k], covariance[:k, :k]))
        for t in range(steps):
            here = np.arange(t * k, (t + 1) * k)
            if t + 1 < steps:
                rows = np.concatenate([here + k, here, [one]])
                moving += full[np.ix_(rows, rows)]
                moves += 1
            if not np.isnan(x[t]).all():
                rows = np.concatenate([k * steps + np.arange(t * p, (t + 1) * p), here, [one]])
                seeing += full[np.ix_(rows, rows)]
                sights += 1

    def regression(total, size, count):
        solved = np.linalg.solve(total[size:, size:], total[size:, :size]).T
        return solved, (total[:size, :size] - solved @ total[size:, :size]) / count

    (ab, q), (cd, r) = regression(moving, k, moves), regression(seeing, p, sights)
    first = np.mean([m for m, _ in firsts], 0)
    spread = np.mean([c + np.outer(m - first, m - first) for m, c in firsts], 0)
    return System(ab[:, :-1], ab[:, -1], q, cd[:, :-1], cd[:, -1], r, first, spread)


@pytest.mark.parametrize("missing", [False, True])
def test_one_step_of_em_is_the_regression_on_joint_gaussian_moments(missing):
    parts = [drawn(7, seed, missing=0.3 if missing else 0.0) for seed in range(3)]
    if missing:
        parts[0][3] = np.nan
    system = known(transition_offset=[0.1, 0.2], observation_covariance=np.eye(3) + 0.3)._system()
    data = observe(Ragged.from_numpy(np.concatenate(parts), np.array([0, 7, 14, 21])))
    model = StateSpace(data, system._asdict(), frozenset(System._fields), 2, diagonal=False)
    improved = model.improved(system, moments(data, system)[0])
    expected = textbook_step(system, parts)
    for name in System._fields:
        np.testing.assert_allclose(getattr(improved, name), getattr(expected, name), rtol=0, atol=1e-9, err_msg=name)


# --- learning ---------------------------------------------------------------------------------------------------------

VARIANTS = {
    "all": {},
    "more states": {"n_states": 4},
    "one state": {"n_states": 1},
    "diagonal": {"covariance": "diagonal"},
    "offset of the states": {"learn": ("transition", "transition_offset", "observation_covariance")},
    "known dynamics": {"transition": MATRICES["transition"]},
    "known view": {"observation": MATRICES["observation"]},
    "one matrix": {**MATRICES, "learn": "transition_covariance"},
    "given start": {**MATRICES, "learn": tuple(System._fields)},
}


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("variant", VARIANTS)
def test_em_never_lowers_the_likelihood(variant, missing):
    X = [drawn(40, 1, missing), drawn(25, 2, missing), drawn(1, 3)]
    model = KalmanFilter(**{"inference": quiet(max_iter=25)} | VARIANTS[variant]).fit(X)
    assert len(model.history_) == 26
    assert np.diff(model.history_).min() > -1e-8 * np.abs(model.history_).max()
    assert model.history_[-1] > model.history_[0]
    np.testing.assert_allclose(model.history_[-1], model.log_prob(X).sum(), rtol=1e-12)
    assert model.log_likelihood_ == pytest.approx(model.history_[-1], rel=1e-12)
    for name in ("transition_covariance_", "observation_covariance_", "initial_covariance_"):
        assert np.linalg.eigvalsh(getattr(model, name))[0] > -1e-10


def test_what_is_not_to_be_learned_stays():
    X = drawn(60)
    model = KalmanFilter(**MATRICES, learn=("observation", "initial_mean"), inference=quiet(max_iter=5)).fit(X)
    truth = known()
    for name in set(System._fields) - {"observation", "initial_mean"}:
        np.testing.assert_array_equal(getattr(model, f"{name}_"), getattr(truth, f"{name}_"))
    assert np.abs(model.observation_ - truth.observation_).max() > 1e-3


def test_the_dynamics_are_recovered_up_to_a_change_of_basis():
    truth = known()
    X, new = drawn(4000, 1), drawn(4000, 2)
    model = KalmanFilter(n_states=2, inference=EM(max_iter=500)).fit(X)
    assert model.converged_
    assert model.log_likelihood_ > truth.log_prob(X).sum()
    assert abs(model.score(new) - truth.score(new)) / len(new) < 0.02  # 27 parameters cost about 27/2T nats a step
    recovered, sought = np.linalg.eigvals(model.transition_), np.linalg.eigvals(truth.transition_)
    np.testing.assert_allclose(np.sort_complex(recovered), np.sort_complex(sought), rtol=0, atol=0.05)
    # the first steps hang on the first state, of which one series says little
    np.testing.assert_allclose(model.predict(new)[20:], truth.predict(new)[20:], rtol=0, atol=0.3)
    np.testing.assert_allclose(model.observation_covariance_, truth.observation_covariance_, rtol=0, atol=0.08)


def test_missing_values_cost_little_of_what_is_learned():
    X, new = drawn(3000, 1, missing=0.3), drawn(3000, 2)
    model = KalmanFilter(inference=EM(max_iter=300)).fit(X)
    assert abs(model.score(new) - known().score(new)) / len(new) < 0.03


def test_several_starts_end_no_worse_than_one():
    X = drawn(150, 1)
    one = KalmanFilter(n_states=3, inference=quiet(max_iter=30), random_state=0).fit(X)
    four = KalmanFilter(n_states=3, inference=quiet(max_iter=30, starts=4), random_state=0).fit(X)
    assert four.log_likelihood_ >= one.log_likelihood_


def test_the_same_seed_gives_the_same_model():
    X = drawn(80)
    one, two = (KalmanFilter(inference=quiet(max_iter=5, starts=2), random_state=3).fit(X) for _ in range(2))
    np.testing.assert_array_equal(one.transition_, two.transition_)


def test_a_fit_that_is_cut_short_says_so():
    with pytest.warns(ConvergenceWarning, match="KalmanFilter was still rising after max_iter=1"):
        KalmanFilter(inference=EM(max_iter=1)).fit(drawn(50))


def test_a_column_that_never_changes_is_held_at_a_floor():
    X = np.column_stack([drawn(100)[:, 0], np.full(100, 7.0)])
    model = KalmanFilter(n_states=1, inference=quiet(max_iter=60)).fit(X)
    assert np.isfinite(model.history_).all()
    assert np.diff(model.history_).min() > -1e-6
    assert np.linalg.eigvalsh(model.observation_covariance_)[0] > 0


# --- ready-made structures --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (KalmanFilter.local_level, {"level": "llevel"}),
        (KalmanFilter.local_trend, {"level": "lltrend"}),
        (lambda **more: KalmanFilter.seasonal(4, trend=False, **more), {"level": "llevel", "seasonal": 4}),
    ],
    ids=["level", "trend", "seasonal"],
)
def test_structures_are_those_of_statsmodels(make, words):
    """Equal likelihood at equal variances, and no variances that statsmodels finds are better."""
    rng = np.random.default_rng(0)
    x = np.cumsum(rng.normal(size=120)) + np.tile([3.0, -1.0, 0.0, -2.0], 30) + rng.normal(size=120)
    model = make(inference=EM(max_iter=1000)).fit(x[:, None])
    peer = UnobservedComponents(x, **words)
    k = len(model.initial_mean_)
    peer.ssm.initialize_known(model.initial_mean_, model.initial_covariance_)
    peer.loglikelihood_burn = 0
    variances = np.diag(model.transition_covariance_)
    noise = [model.observation_covariance_[0, 0], *variances[variances > 0]]
    assert len(noise) == len(peer.param_names)
    np.testing.assert_allclose(peer.loglike(noise), model.log_likelihood_, rtol=1e-8)
    best = peer.fit(disp=0, maxiter=500, start_params=noise, method="nm")
    assert model.log_likelihood_ > best.llf - 0.05
    assert model.transition_.shape == (k, k)


def test_structures_keep_their_zeros():
    x = np.cumsum(np.random.default_rng(0).normal(size=(100, 1)), 0)
    model = KalmanFilter.seasonal(5, inference=quiet(max_iter=10)).fit(x)
    assert np.count_nonzero(model.transition_covariance_) <= 3
    np.testing.assert_array_equal(model.transition_covariance_, np.diag(np.diag(model.transition_covariance_)))
    np.testing.assert_array_equal(model.transition_[2], [0, 0, -1, -1, -1, -1])


@pytest.mark.parametrize("unit", [1e4, 1e-5])
@pytest.mark.parametrize("trend", [True, False])
def test_structures_do_not_depend_on_units(trend, unit):
    """Ten steps of EM from where the descent in sizes ends: of 50 seeds none is further apart than 0.001 nats."""
    x = np.cumsum(np.random.default_rng(0).normal(size=(100, 1)), 0)
    one, other = (KalmanFilter.seasonal(5, trend, inference=quiet(max_iter=10)).fit(size * x) for size in (1.0, unit))
    np.testing.assert_allclose(other.log_likelihood_ + 100 * np.log(unit), one.log_likelihood_, rtol=0, atol=0.01)


def test_the_weight_of_a_series_is_so_many_of_it():
    """Where EM begins, the scale of a diffuse start and the floor of the noise count them too."""
    X = [drawn(40, 1, 0.1)[:, :1] + 3.0 * seed for seed in range(3)]
    several = [X[0], X[1], X[1], X[1], X[2], X[2]]
    for make in (KalmanFilter.local_trend, lambda **more: KalmanFilter(n_states=2, **more)):
        weighted = make(inference=quiet(max_iter=10)).fit(X, sample_weight=[1, 3, 2])
        repeated = make(inference=quiet(max_iter=10)).fit(several)
        np.testing.assert_allclose(weighted.history_, repeated.history_, rtol=1e-5)


def test_air_passengers_are_forecast_with_their_season(shared_data):
    """Twelve months ahead, on the logarithm: 4 % from the truth on average, and inside the intervals."""
    counts = pd.read_csv(shared_data / "air_passengers.csv")["Passengers"].to_numpy()
    x = np.log(counts)[:, None]
    model = KalmanFilter.seasonal(12, inference=EM(max_iter=300)).fit(x[:-12])
    ahead = model.forecast(x[:-12], steps=12, level=0.95)
    assert np.abs(np.exp(ahead.mean - x[-12:]) - 1).mean() < 0.04
    assert ((ahead.lower <= x[-12:]) & (x[-12:] <= ahead.upper)).mean() >= 11 / 12


# --- answers ----------------------------------------------------------------------------------------------------------


def test_a_forecast_is_the_prediction_of_missing_steps():
    model, X = known(), drawn(30, missing=0.1)
    longer = np.vstack([X, np.full((8, 3), np.nan)])
    ahead = model.forecast(X, steps=8, level=0.8)
    expected = model.predict_dist(longer)
    np.testing.assert_allclose(ahead.mean, model.predict(longer)[30:], rtol=0, atol=1e-12)
    covariance = expected.covariance_matrix[30:]
    np.testing.assert_allclose(ahead.distribution.covariance_matrix, covariance, rtol=0, atol=1e-12)
    deviation = ahead.distribution.variance.sqrt().numpy()
    np.testing.assert_allclose(ahead.upper - ahead.mean, 1.2815515655446004 * deviation, rtol=1e-9)
    np.testing.assert_allclose(ahead.mean - ahead.lower, ahead.upper - ahead.mean, rtol=1e-9)


def test_the_likelihood_is_the_product_of_one_step_predictions():
    model, X = known(), drawn(40)
    log_prob = model.predict_dist(X).log_prob(torch.from_numpy(X))
    np.testing.assert_allclose(model.log_prob(X), [float(log_prob.sum())], rtol=1e-12)
    np.testing.assert_allclose(model.score(X), float(log_prob.sum()), rtol=1e-12)


def test_intervals_hold_their_share(seed):
    """600 series of their own, four steps, three columns: each share is within 5 standard errors of the level."""
    model = known()
    X = model.sample(600, random_state=seed, length=24)
    ahead = model.forecast(list(X[:, :20]), steps=4, level=0.8)
    inside = np.array([(f.lower <= x) & (x <= f.upper) for f, x in zip(ahead, X[:, 20:], strict=True)])
    assert np.abs(inside.mean(0) - 0.8).max() < 5 * np.sqrt(0.16 / 600)


def test_states_lie_in_their_posterior(seed):
    """Mahalanobis distances of the true states from the smoothed ones have the mean of χ² with 2 degrees, 2 ± 5 s.e."""
    model = known()
    X, Z = model.sample(400, random_state=seed, length=20, return_hidden=True)
    X[:, 5:8] = np.nan
    away = np.array([z[6] - p.mean[6].numpy() for z, p in zip(Z, model.posterior(list(X)), strict=True)])
    covariance = model.posterior(X[0]).covariance_matrix[6].numpy()
    distance = (away @ np.linalg.inv(covariance) * away).sum(1)
    assert abs(distance.mean() - 2) < 5 * 2 / np.sqrt(400)


def test_samples_have_the_moments_of_the_model(seed):
    """20,000 series: means within 5 standard errors, covariances within 6."""
    model = known()
    X, Z = model.sample(20_000, random_state=seed, length=3, return_hidden=True)
    assert X.shape == (20_000, 3, 3)
    assert Z.shape == (20_000, 3, 2)
    nothing = model.predict_dist(np.full((3, 3), np.nan))
    mean, covariance = nothing.mean.numpy()[2], nothing.covariance_matrix.numpy()[2]
    error = np.sqrt(np.diag(covariance) / 20_000)
    assert (np.abs(X[:, 2].mean(0) - mean) < 5 * error).all()
    unit = np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    np.testing.assert_allclose(np.cov(X[:, 2].T) / unit, covariance / unit, rtol=0, atol=6 * np.sqrt(2 / 20_000))


def test_samples_that_continue_a_series_have_its_forecast(seed):
    """5,000 paths: means of four steps within 5 standard errors."""
    model, X = known(), drawn(30)
    paths = model.sample(5000, X, random_state=seed, length=4)
    ahead = model.forecast(X, steps=4).distribution
    error = ahead.variance.sqrt().numpy() / np.sqrt(5000)
    assert (np.abs(paths.mean(0) - ahead.mean.numpy()) < 5 * error).all()


def test_filter_and_smoother_agree_at_the_end():
    model, X = known(), drawn(25, missing=0.2)
    filtered, smoothed = model.filter(X), model.smooth(X)
    np.testing.assert_allclose(filtered[0][-1], smoothed[0][-1], rtol=1e-12)
    np.testing.assert_allclose(filtered[1][-1], smoothed[1][-1], rtol=1e-12)
    assert (np.trace(smoothed[1], axis1=1, axis2=2) <= np.trace(filtered[1], axis1=1, axis2=2) + 1e-12).all()
    posterior = model.posterior(X)
    np.testing.assert_array_equal(posterior.mean.numpy(), smoothed[0])
    np.testing.assert_allclose(posterior.covariance_matrix.numpy(), smoothed[1], rtol=0, atol=1e-14)
    np.testing.assert_array_equal(model.transform(X), smoothed[0])


def test_a_list_of_series_is_answered_as_each_alone():
    model = known()
    X = [drawn(12, 1), drawn(5, 2, missing=0.2), drawn(1, 3), drawn(30, 4)]
    lengths = [len(x) for x in X]
    together, alone = model.log_prob(X), np.array([model.log_prob(x)[0] for x in X])
    np.testing.assert_allclose(together, alone, rtol=1e-12)
    np.testing.assert_allclose(model.log_prob(np.vstack(X), lengths), alone, rtol=1e-12)
    np.testing.assert_allclose(model.score(X), alone.mean(), rtol=1e-12)
    for verb in ("transform", "predict"):
        answers = getattr(model, verb)(X)
        for answer, x in zip(answers, X, strict=True):
            np.testing.assert_allclose(answer, getattr(model, verb)(x), rtol=0, atol=1e-12)
        np.testing.assert_array_equal(getattr(model, verb)(np.vstack(X), lengths), np.vstack(answers))
    for verb in ("filter", "smooth"):
        for (mean, covariance), x in zip(getattr(model, verb)(X), X, strict=True):
            np.testing.assert_allclose(mean, getattr(model, verb)(x)[0], rtol=0, atol=1e-12)
            np.testing.assert_allclose(covariance, getattr(model, verb)(x)[1], rtol=0, atol=1e-12)
    for posterior, predicted, ahead, x in zip(
        model.posterior(X), model.predict_dist(X), model.forecast(X, steps=2), X, strict=True
    ):
        np.testing.assert_allclose(posterior.mean, model.posterior(x).mean, rtol=0, atol=1e-12)
        np.testing.assert_allclose(predicted.mean, model.predict_dist(x).mean, rtol=0, atol=1e-12)
        np.testing.assert_allclose(ahead.upper, model.forecast(x, steps=2).upper, rtol=0, atol=1e-12)


def test_steps_that_are_all_missing_add_nothing_to_the_likelihood():
    model, X = known(), drawn(20)
    longer = np.vstack([X, np.full((5, 3), np.nan)])
    np.testing.assert_allclose(model.log_prob(longer), model.log_prob(X), rtol=1e-12)


def test_a_diffuse_start_forgets_its_mean():
    x = np.random.default_rng(0).normal(size=(50, 1)) + 1e4
    near = KalmanFilter.local_level(inference=quiet(max_iter=1)).fit(x)
    far = KalmanFilter.local_level(inference=quiet(max_iter=1), initial_mean=5e3).fit(x)
    np.testing.assert_allclose(near.transform(x), far.transform(x), rtol=1e-6)
