"""Whether chains agree, and how many independent draws they are worth: for many quantities at once.

    R-hat = √(var⁺ / W),   var⁺ = (n−1)/n · W + B/n     (B between, W within chains, each split in two)
    ESS   = mn / (−1 + 2 Σₜ ρₜ)                          (ρ the autocorrelation, summed while its pairs are positive)

Both are computed of ranks turned into normal scores, so that no heavy tail deceives them; R-hat is the larger of those
of the values and of their distances from the median. They are ArviZ's numbers, without its time to import.

Chains that agree have an R-hat above 1 too if they are short: the mean of n draws with autocorrelation time τ varies by
B/n = Wτ/n, so that R-hat² is about 1 + (τ − 1)/n. Many such chains can be worth thousands of independent draws; `agree`
tells them from chains whose means differ by more than that.
"""

from __future__ import annotations

import numpy as np
from scipy.fft import next_fast_len
from scipy.special import fdtri, ndtri
from scipy.stats import rankdata

__all__ = ["AGREE", "agree", "diagnose"]

AGREE = 1.05
"""R-hat up to which chains are said to agree, of whatever length."""
ALARM = 1e-3
"""How often one of the quantities of chains that agree may be said not to."""
WORTH, FORGOTTEN = 400.0, 3.0
"""Independent draws that all chains, and half of one, must be worth before a larger R-hat is laid to their length."""


def diagnose(draws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """R-hat and the effective sample size (bulk) of each quantity, (chains, draws, k) → (k,) and (k,).

    Both are NaN with fewer than 4 draws or where nothing moves.

    >>> same = np.random.default_rng(0).normal(size=(4, 500, 1))
    >>> rhat, ess = diagnose(same)
    >>> bool(rhat[0] < 1.01), bool(1500 < ess[0] < 2500)
    (True, True)
    >>> bool(diagnose(same + np.arange(4)[:, None, None])[0] > 1.5)
    True
    """
    if draws.shape[1] < 4:
        return np.full(draws.shape[2], np.nan), np.full(draws.shape[2], np.nan)
    halves = _split(draws)
    folded = np.abs(halves - np.median(halves, axis=(0, 1)))
    scores = _scores(halves)
    return np.fmax(_ratio(scores), _ratio(_scores(folded))), _effective(scores)


def agree(draws: np.ndarray) -> np.ndarray:
    """Whether chains agree about each quantity, (chains, draws, k) → (k,): R-hat ≤ 1.05, or no more than by length.

    The means of half chains have a variance of m = σ²τ/n, where τ is estimated within them: B/m is of an F distribution
    then. This counts where each half is worth a few independent draws and all together are worth hundreds; otherwise
    chains are too short to tell, and are not said to agree.

    >>> x = np.random.default_rng(0).normal(size=(200, 50, 1))
    >>> for step in range(1, 50):
    ...     x[:, step] += 0.7 * x[:, step - 1]
    >>> bool(diagnose(x)[0] > 1.08), bool(agree(x)), bool(agree(x + np.arange(200)[:, None, None] % 2))
    (True, True, False)
    """
    if draws.shape[1] < 4:
        return np.full(draws.shape[2], True)
    halves = _split(draws)
    folded = np.abs(halves - np.median(halves, axis=(0, 1)))
    quantities = draws.shape[2]
    return _within_limit(_scores(halves), quantities) & _within_limit(_scores(folded), quantities)


def _within_limit(scores: np.ndarray, quantities: int) -> np.ndarray:
    chains, n, _ = scores.shape
    square = np.nan_to_num(_ratio(scores) ** 2, nan=0.0)
    fine = square <= AGREE**2
    if fine.all() or chains * n < WORTH or n < 2 * FORGOTTEN:
        return fine
    late = np.flatnonzero(~fine)
    part = _variance_of_mean(scores[..., late])  # of σ²: 1 over what half a chain is worth
    ratio = (n - 1) / n * part / (1 - part)
    # m is known with a relative variance of 2m/M, and its error in B/m is at most doubled by the draws they share
    chance = fdtri(chains - 1, chains * (1 - part) ** 2 / (4 * part), 1 - ALARM / quantities)
    judged = (1 / part >= FORGOTTEN) & (chains / part >= WORTH)
    fine[late] = judged & (square[late] <= (n - 1) / n + ratio * chance)
    return fine


def _variance_of_mean(scores: np.ndarray) -> np.ndarray:
    """The variance of the mean of a half chain over that of one draw, if correlations fall as ρᵗ: (m, n, k) → (k,).

    ρ comes from squared steps over the lag at which half is forgotten, so that no mean of a chain enters, and from the
    variance within chains, which lacks that of their means: E W = σ²(1 − m)·n/(n − 1), E (xₜ₊ₗ − xₜ)²/2 = σ²(1 − ρˡ).
    """
    halves, n, quantities = scores.shape
    steps = scores.reshape(2, halves // 2, n, quantities)
    scores = (steps - steps.mean(1, keepdims=True)).reshape(scores.shape)  # a drift of all chains is no correlation
    within = scores.var(1, ddof=1).mean(0)
    lag, step = np.ones(quantities), np.ones(quantities)
    for candidate in (2**power for power in range(int(np.log2(n / 2)))):
        with np.errstate(invalid="ignore"):  # chains that stand still, each at its own place
            moved = np.square(scores[:, candidate:] - scores[:, :-candidate]).mean((0, 1)) / 2 / within
        known = (moved < 0.5) | (candidate == 1)
        lag, step = np.where(known, candidate, lag), np.where(known, moved, step)
    low, high = np.zeros(quantities), np.full(quantities, 1 - 1e-6)
    for _ in range(40):  # the step expected falls as ρ rises
        rho = (low + high) / 2
        above = (1 - rho**lag) * (n - 1) / n / (1 - _of_mean(rho, n)) > step
        low, high = np.where(above, rho, low), np.where(above, high, rho)
    return _of_mean(low, n)


def _of_mean(rho: np.ndarray, n: int) -> np.ndarray:
    """Var(x̄)/σ² of n draws whose correlations are ρᵗ."""
    return ((1 + rho) / (1 - rho) - 2 * rho * (1 - rho**n) / (n * (1 - rho) ** 2)) / n


def _effective(scores: np.ndarray) -> np.ndarray:
    """mn / (−1 + 2 Σₜ ρₜ), the sum being over pairs of lags, made to fall, as long as they are positive."""
    chains, n, _ = scores.shape
    covariance = _autocovariance(scores).mean(0)  # (n, k)
    within = covariance[0] * n / (n - 1)
    total = covariance[0] + (scores.mean(1).var(0, ddof=1) if chains > 1 else 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        rho = 1 - (within - covariance) / total
    rho[0] = 1.0
    pairs = 1 + max(0, (n - 3) // 2)
    even, odd = rho[0 : 2 * pairs : 2], rho[1 : 2 * pairs : 2]
    sums = even + odd
    alive = np.logical_and.accumulate(sums >= 0, axis=0)
    alive[-1] = False
    used = np.where(alive, np.minimum.accumulate(sums, axis=0), 0.0)
    first = alive.sum(0)[None]  # pair that is not used: its even lag counts once, if positive or if no lag is left
    last, whole = (np.take_along_axis(part, first, 0)[0] for part in (even, sums))
    tau = -1 + 2 * used.sum(0) + np.where(whole >= 0, last, np.maximum(last, 0.0))
    size = chains * n
    effective = size / np.maximum(tau, 1 / np.log10(size))
    return np.where(np.isnan(sums).any(0), np.nan, effective)


def _split(draws: np.ndarray) -> np.ndarray:
    """Each chain as two: (2·chains, draws // 2, k)."""
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, -half:]])


def _scores(draws: np.ndarray) -> np.ndarray:
    """Normal scores of the ranks over all chains."""
    flat = draws.reshape(-1, draws.shape[2])
    ranks = rankdata(flat, axis=0)
    return ndtri((ranks - 0.375) / (len(flat) + 0.25)).reshape(draws.shape)


def _ratio(scores: np.ndarray) -> np.ndarray:
    n = scores.shape[1]
    within, between = scores.var(1, ddof=1).mean(0), scores.mean(1).var(0, ddof=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.sqrt((n - 1) / n + between / within)


def _autocovariance(scores: np.ndarray) -> np.ndarray:
    """Σ (xᵢ − x̄)(xᵢ₊ₜ − x̄) / n of each chain and lag t, by Fourier transform."""
    n = scores.shape[1]
    size = next_fast_len(2 * n)
    spectrum = np.fft.rfft(scores - scores.mean(1, keepdims=True), size, axis=1)
    return np.fft.irfft(np.abs(spectrum) ** 2, size, axis=1)[:, :n] / n
