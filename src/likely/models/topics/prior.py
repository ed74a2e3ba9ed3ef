"""The Dirichlet prior that fits some documents best: maximum likelihood of α from the mean of log θ.

ψ(α_k) = ψ(Σ_j α_j) + mean_d log θ_dk
"""

from __future__ import annotations

import numpy as np
from scipy.special import polygamma, psi

__all__ = ["inverse_digamma", "prior_of_log_theta"]


def inverse_digamma(y: np.ndarray) -> np.ndarray:
    """The x > 0 with ψ(x) = y, by Newton's method from a start that is right to a tenth.

    >>> inverse_digamma(psi(np.array([0.01, 1.0, 50.0]))).round(10)
    array([1.e-02, 1.e+00, 5.e+01])
    """
    x = np.where(y > -2.22, np.exp(np.minimum(y, 700.0)) + 0.5, -1.0 / np.minimum(y - psi(1.0), -1.0))
    for _ in range(6):
        x = np.maximum(x - (psi(x) - y) / polygamma(1, x), x / 10)
    return x


def prior_of_log_theta(mean_log: np.ndarray, start: np.ndarray, steps: int = 30) -> np.ndarray:
    """α after fixed-point steps from `start`; none can lower the likelihood of the documents' log θ.

    >>> draws = np.random.default_rng(0).dirichlet([0.5, 2.0], size=20_000)
    >>> prior_of_log_theta(np.log(draws).mean(0), np.ones(2), steps=500).round(1)
    array([0.5, 2. ])
    """
    prior = start
    for _ in range(steps):
        prior = np.maximum(inverse_digamma(psi(prior.sum()) + mean_log), 1e-6)
    return prior
