"""Dynamics: classical ways in which a series moves on, in the place of a network that learns one.

naive             z_t = z_{t−1} + drift + e                 Var at step h = h σ²
seasonal naive    z_t = z_{t−m} + e                         Var at step h = ⌈h / m⌉ σ²
"""

from __future__ import annotations

from ...core.spec import Spec

__all__ = ["Dynamics", "Naive", "SeasonalNaive"]


class Dynamics(Spec, axis="dynamics"):
    """What `Forecaster(network=…)` takes beside networks: dynamics that are known up to a few numbers."""

    def lags(self, season: int) -> tuple[int, ...]:
        """The past values that the next one is made of, with weights that are known; none for a hidden state.

        >>> SeasonalNaive().lags(12)
        (12,)
        """
        return ()

    @property
    def drift(self) -> bool:
        """Whether a constant is added at each step."""
        return False


class Naive(Dynamics):
    """The last value, and σ² from the steps so far; with `trend`, their mean is added at each step.

    >>> from likely import Forecaster
    >>> walk = Forecaster(network=Naive(), transform="none").fit([1.0, 2.0, 1.0, 2.0, 3.0])
    >>> walk.predict(2), walk.predict_dist(2).variance.numpy()
    (array([3., 3.]), array([1., 2.]))
    """

    trend: bool = False

    def lags(self, season: int) -> tuple[int, ...]:
        """The last value."""
        return (1,)

    @property
    def drift(self) -> bool:
        """As `trend` says."""
        return self.trend


class SeasonalNaive(Dynamics):
    """The value one season ago.

    >>> from likely import Forecaster
    >>> year = Forecaster(network=SeasonalNaive(), season=4, transform="none").fit([1.0, 2, 3, 4, 1, 2, 3, 5])
    >>> year.predict(5)
    array([1., 2., 3., 5., 1.])
    """

    def lags(self, season: int) -> tuple[int, ...]:
        """The one at the season."""
        return (season,)
