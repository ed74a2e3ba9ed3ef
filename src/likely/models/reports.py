"""What a fit by any inference reports, under one set of names: `history_`, `n_iter_`, `log_evidence_`."""

from __future__ import annotations

from typing import Any

from ..inference import Posterior

__all__ = ["Reports"]


class Reports:
    """The reports of an estimator whose `posterior_` an inference found; one that was not made is an AttributeError."""

    posterior_: Posterior

    @property
    def history_(self) -> dict[str, list[float]]:
        """What training recorded epoch by epoch: `loss`, `lr`, `validation`, or a loss for each player of a game."""
        return self._reported("history", "history_", "an inference that trains by epochs, such as MAP()")

    @property
    def n_iter_(self) -> int:
        """Epochs of training, or iterations of Newton's method."""
        info = self.posterior_.info if "posterior_" in self.__dict__ else {}
        if "history" in info:
            return max(map(len, info["history"].values()), default=0)
        return int(self._reported("iterations", "n_iter_", "MAP() or Newton()"))

    @property
    def log_evidence_(self) -> float:
        """log p(data) with θ integrated out."""
        return float(self._reported("log_evidence", "log_evidence_", "Exact('full') or Laplace()"))

    def _reported(self, key: str, name: str, who: str) -> Any:
        value = self.posterior_.info.get(key) if "posterior_" in self.__dict__ else None
        if value is None:
            raise AttributeError(f"{type(self).__name__} has {name} once fitted by {who}.")
        return value
