"""The errors and warnings a person meets.

Every message names the argument, says what was found and what would do. All errors of user input are
`ValueError`s, so scikit-learn's tools treat them as their own.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "ApproximationWarning",
    "ConvergenceWarning",
    "DataError",
    "DivergenceError",
    "LikelyError",
    "LikelyWarning",
    "ModelFileError",
    "ReadingNote",
    "SpecError",
    "TrainingError",
]


class LikelyError(ValueError):
    """Base of every error that a user can cause and fix."""


class SpecError(LikelyError):
    """A spec was misspelt, misused, or got a value it cannot hold."""


class DataError(LikelyError):
    """Data does not fit what was asked of it (shape, support, missing values, columns)."""


class TrainingError(LikelyError, ArithmeticError):
    """Training cannot go on, for example because the loss is no longer finite."""


class DivergenceError(TrainingError):
    """Training left the finite numbers. `posterior` is the last sound state, from which a model can still answer.

    >>> DivergenceError("The critic's loss is nan at step 7.").posterior is None
    True
    """

    def __init__(self, message: str, posterior: Any = None) -> None:
        super().__init__(message)
        self.posterior = posterior


class ModelFileError(LikelyError, OSError):
    """A model file cannot be written, or what was read is not a sound model file."""


class LikelyWarning(UserWarning):
    """Base of every warning."""


class ConvergenceWarning(LikelyWarning):
    """An iterative method stopped before it converged, or the optimum lies at infinity."""


class ApproximationWarning(LikelyWarning):
    """An answer is approximate where the method asked for promises more."""


class ReadingNote(LikelyWarning):
    """What a table says was read in another form than it stands there, such as `1,200` as 1200."""
