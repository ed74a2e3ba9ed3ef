"""Whether chains agree, and how many independent draws they are worth: for many quantities at once.

    R-hat = √(var⁺ / W),   var⁺ = (n−1)/n · W + B/n     (B between, W within chains, each split in two)
    ESS   = mn / (−1 + 2 Σₜ ρₜ)                          (ρ the autocorrelation, summed while its pairs are positive)

Both are computed of ranks turned into normal scores, so that no heavy tail deceives them; R-hat is the larger of those
of the values and of their distances from the median. They are ArviZ's numbers, without its time to import.
"""

from __future__ import annotations

import numpy as np
from scipy.fft import next_fast_len
from scipy.special import ndtri
from scipy.stats import rankdata

__all__ = ["AGREE", "diagnose"]

AGREE = 1.05
"""R-hat up to which chains are said to agree."""


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
