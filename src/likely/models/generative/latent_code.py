"""What every model with a code answers: rows to codes, codes to rows, and what lies between two rows.

x → E[z | x],      z → E[x | z],      q(z | x)
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor
from torch.distributions import Categorical, Independent, MixtureSameFamily, Normal

from ...core.errors import DataError
from .between import _Between
from .module import ask

__all__ = ["_LatentCode"]


class _LatentCode(_Between):
    """The questions about a code."""

    latent: int

    def transform(self, X: Any, condition: Any = None) -> np.ndarray:
        """The mean code of each row, (n, latent)."""
        x, given = self._asked(X, condition)
        best = self._best()
        return self._in_blocks(len(x), lambda rows: self._cpu(self._middle(best, x, given, rows)[0])).numpy()

    def inverse_transform(self, Z: Any, condition: Any = None) -> Any:
        """The mean of rows with these codes (n, latent), in the form of X; a label is the most probable one."""
        check_is_fitted(self)
        codes = torch.as_tensor(np.asarray(Z, dtype=np.float64))
        if codes.ndim != 2 or codes.shape[1] != self.latent:
            raise DataError(f"Z has shape {tuple(codes.shape)}; codes are (n, {self.latent}).")
        if not bool(codes.isfinite().all()):
            raise DataError("Z has values that are not finite.")
        given = self._spread_condition(condition, len(codes))
        best = self._best()

        def reconstructed(rows: slice) -> Tensor:
            own = self._placed(codes[rows])
            return self._cpu(ask(self.posterior_, best, "reconstructed", own, *_told(given, rows)))

        return self.form_.given(self._in_blocks(len(codes), reconstructed))

    def reconstruct(self, X: Any, condition: Any = None) -> Any:
        """Rows by way of their codes: `inverse_transform(transform(X))`."""
        return self.inverse_transform(self.transform(X, condition), condition)

    def _middle(self, member: int, x: Tensor, condition: Tensor | None, rows: slice) -> tuple[Tensor, Tensor]:
        """Mean and log-scale of the code of some rows under one member."""
        return ask(self.posterior_, member, "middle", x[rows], *_told(condition, rows))


class _DrawnCode(_LatentCode):
    """A code that is a random variable."""

    def posterior(self, X: Any, condition: Any = None) -> Any:
        """q(z | x), a torch distribution of codes; of several members of a posterior, the mixture of theirs."""
        x, given = self._asked(X, condition)
        weights = self.posterior_.weights

        def pair(rows: slice, member: int) -> Tensor:
            return torch.stack(self._middle(member, x, given, rows))

        pairs = [self._in_blocks(len(x), partial(pair, member=member), axis=1) for member in range(len(weights))]
        if len(pairs) == 1:
            (mean, log_scale), *_ = pairs
            return Independent(Normal(mean, log_scale.exp()), 1)
        means, log_scales = (torch.stack(part, 1) for part in zip(*pairs, strict=True))  # (n, members, latent)
        return MixtureSameFamily(
            Categorical(weights.to(means).expand(len(x), -1)), Independent(Normal(means, log_scales.exp()), 1)
        )


def _told(condition: Tensor | None, rows: slice) -> tuple[Tensor, ...]:
    return () if condition is None else (condition[rows],)
