"""Kalman smoother over 100,000 steps, against the compiled one of statsmodels: complete, and with gaps.

Complete series come to rest after a few hundred covariances; with gaps all over, each step has its own.
"""

from __future__ import annotations

import numpy as np

from likely import KalmanFilter

from .timing import Result, compare, interleave, show

STEPS = 100_000


def run(repeats: int = 3) -> list[Result]:
    """The cases."""
    return [*_smoother(2, 1, 0.0, repeats), *_smoother(4, 2, 0.0, repeats), *_smoother(2, 1, 0.1, repeats)]


def _smoother(k: int, p: int, missing: float, repeats: int) -> list[Result]:
    from statsmodels.tsa.statespace.kalman_smoother import KalmanSmoother

    random = np.random.default_rng(0)
    transition = 0.95 * np.linalg.qr(random.normal(size=(k, k)))[0]
    observation = random.normal(size=(p, k))
    model = KalmanFilter(
        transition=transition,
        observation=observation,
        transition_covariance=0.3,
        observation_covariance=0.5,
        initial_mean=0.0,
        initial_covariance=1.0,
    ).fit(np.zeros((2, p)))
    X = model.sample(random_state=0, length=STEPS)[0]
    X[random.random(X.shape) < missing] = np.nan
    peer = KalmanSmoother(k_endog=p, k_states=k)
    peer.bind(X.copy())
    peer["design"], peer["obs_cov"] = observation, 0.5 * np.eye(p)
    peer["transition"], peer["selection"], peer["state_cov"] = transition, np.eye(k), 0.3 * np.eye(k)
    peer.initialize_known(np.zeros(k), np.eye(k))

    timed = interleave({"likely": lambda: model.smooth(X), "statsmodels": lambda: _answers(peer.smooth())}, repeats)
    name = f"Kalman smoother, {STEPS:,} steps, {k} states, {p} observed" + (f", {missing:.0%} missing" * (missing > 0))
    return compare(name, timed, _difference, {"statsmodels": 1 / 3})


def _answers(smoothed: object) -> tuple[np.ndarray, np.ndarray]:
    return smoothed.smoothed_state.T, np.moveaxis(smoothed.smoothed_state_cov, 2, 0)  # type: ignore[attr-defined]


def _difference(mine: tuple[np.ndarray, np.ndarray], other: tuple[np.ndarray, np.ndarray]) -> tuple[str, bool]:
    largest = max(float(np.abs(a - b).max()) for a, b in zip(mine, other, strict=True))
    return f"means and covariances within {largest:.1e}", largest <= 1e-6


if __name__ == "__main__":
    show(run())
