"""What every model with a code answers: rows to codes, codes to rows, and what lies between two rows.

x → E[z | x],      z → E[x | z],      q(z | x)
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor
from torch.distributions import Categorical, Independent, MixtureSameFamily, Normal

from ...core.draws import count_of
from ...core.errors import DataError
from ...core.threads import threads_for
from .base import _Generative
from .module import ask

__all__ = ["_LatentCode"]


class _LatentCode(_Generative):
    """The questions about a code. Several members of a posterior are averaged, except that each has a code of its own:

    then `transform` and `inverse_transform` speak of the first.
    """

    latent: int

    def transform(self, X: Any, condition: Any = None) -> np.ndarray:
        """The mean code of each row, (n, latent)."""
        x, given = self._asked(X, condition)
        return self._cpu(self._middle(0, x, given)[0]).numpy()

    def inverse_transform(self, Z: Any, condition: Any = None) -> Any:
        """The mean of rows with these codes (n, latent), in the form of X; a label is the most probable one."""
        check_is_fitted(self)
        codes = torch.as_tensor(np.asarray(Z, dtype=np.float64))
        if codes.ndim != 2 or codes.shape[1] != self.latent:
            raise DataError(f"Z has shape {tuple(codes.shape)}; codes are (n, {self.latent}).")
        if not bool(codes.isfinite().all()):
            raise DataError("Z has values that are not finite.")
        given = self._spread_condition(condition, len(codes))
        with threads_for(self._footprint()[0] * len(codes)):
            rows = ask(self.posterior_, 0, "reconstructed", self._placed(codes), *_told(given))
        return self.form_.given(self._cpu(rows))

    def reconstruct(self, X: Any, condition: Any = None) -> Any:
        """Rows by way of their codes: `inverse_transform(transform(X))`."""
        return self.inverse_transform(self.transform(X, condition), condition)

    def interpolate(self, a: Any, b: Any, n: int = 10, condition: Any = None) -> Any:
        """n rows from a to b, whose codes are on the line between those of a and b. a and b are one row each."""
        check_is_fitted(self)
        count = count_of(n)
        ends = [self.transform(self._one(row, name), self._same(condition)) for row, name in ((a, "a"), (b, "b"))]
        along = np.linspace(0.0, 1.0, count)[:, None]
        return self.inverse_transform((1 - along) * ends[0] + along * ends[1], condition)

    def _one(self, row: Any, name: str) -> Any:
        if self.form_.columns:
            single = {key: np.atleast_1d(row[key]).tolist() for key in self.feature_names_in_}
            if any(len(value) != 1 for value in single.values()):
                raise DataError(f"{name} must be one row.")
            return single
        values = np.asarray(row)
        values = values[None] if values.shape == self.form_.shape else values
        if values.shape != (1, *self.form_.shape):
            raise DataError(f"{name} has shape {np.shape(row)}; it must be one row, of shape {self.form_.shape}.")
        return values

    @staticmethod
    def _same(condition: Any) -> Any:
        single = isinstance(condition, str | int | float | bool | np.generic)
        return [condition] if single else condition

    def _middle(self, member: int, x: Tensor, condition: Tensor | None) -> tuple[Tensor, Tensor]:
        """Mean and log-scale of the code under one member."""
        with threads_for(self._footprint()[0] * len(x)):
            return ask(self.posterior_, member, "middle", x, *_told(condition))


class _DrawnCode(_LatentCode):
    """A code that is a random variable."""

    def posterior(self, X: Any, condition: Any = None) -> Any:
        """q(z | x), a torch distribution of codes; of several members of a posterior, the mixture of theirs."""
        x, given = self._asked(X, condition)
        weights = self.posterior_.weights
        pairs = [self._middle(member, x, given) for member in range(len(weights))]
        if len(pairs) == 1:
            (mean, log_scale), *_ = pairs
            return Independent(Normal(mean, log_scale.exp()), 1)
        means, log_scales = (torch.stack(part, 1) for part in zip(*pairs, strict=True))  # (n, members, latent)
        return MixtureSameFamily(
            Categorical(weights.to(means).expand(len(x), -1)), Independent(Normal(means, log_scales.exp()), 1)
        )


def _told(condition: Tensor | None) -> tuple[Tensor, ...]:
    return () if condition is None else (condition,)
