"""A number that knows how sure it is: a float with the standard error of the average it came from, 0 if exact."""

from __future__ import annotations

import numpy as np

__all__ = ["Estimate"]


class Estimate(float):
    """A float that carries a `standard_error`; arithmetic on it gives plain floats.

    >>> Estimate(0.25)
    0.25
    >>> Estimate(0.25, standard_error=0.002)
    0.2500 ± 0.0020
    >>> Estimate(0.25, standard_error=0.002) < 0.3
    True
    """

    __slots__ = ("standard_error",)

    standard_error: float

    def __new__(cls, value: float, standard_error: float = 0.0) -> Estimate:
        self = super().__new__(cls, value)
        self.standard_error = float(standard_error)
        return self

    @classmethod
    def mean(cls, draws: np.ndarray) -> Estimate:
        """The mean of independent draws, with s/√n. One infinite draw makes the mean infinite beyond doubt."""
        if not np.isfinite(draws).all():
            return cls(float(draws.mean()))
        return cls(float(draws.mean()), float(draws.std(ddof=1) / np.sqrt(len(draws))))

    def __getnewargs__(self) -> tuple[float, float]:  # type: ignore[override]
        return float(self), self.standard_error

    def __repr__(self) -> str:
        if self.standard_error == 0:
            return float.__repr__(self)
        digits = max(0, 1 - int(np.floor(np.log10(self.standard_error))))
        return f"{float(self):.{digits}f} ± {self.standard_error:.{digits}f}"

    __str__ = __repr__
