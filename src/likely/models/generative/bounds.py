"""Lower bounds on log p(x) from draws of a code, z₁ … z_k ~ q(z | x).

    ELBO    E[ log p(x | z) ] − β KL( q(z | x) ‖ p(z) )  =  E[ log p(x | z) + β (log p(z) − log q(z | x)) ]
    IWAE    E[ log 1/k Σᵢ p(x | zᵢ) p(zᵢ) / q(zᵢ | x) ]          rises with k, to log p(x)

With β = 1 the ELBO is IWAE with one draw. Other β weigh the code's cost otherwise: then it trains, but bounds nothing.
"""

from __future__ import annotations

import math
from typing import Literal, Self

import torch
from torch import Tensor

from ...core.spec import Spec, is_among, is_integer, require

__all__ = ["ELBO", "IWAE", "Bound"]


class Bound(Spec, axis="bound"):
    """What training raises in place of log p(x)."""

    @property
    def count(self) -> int:
        """Draws of the code per row."""
        raise NotImplementedError

    @property
    def analytic(self) -> bool:
        """Whether the divergence is to be taken in closed form, where there is one."""
        return False

    def of(self, log_likelihood: Tensor, log_ratio: Tensor) -> Tensor:
        """The bound (n,) from log p(x | z) and log p(z) − log q(z | x), both (k, n), or what broadcasts to it."""
        raise NotImplementedError


class ELBO(Bound):
    """E log p(x | z) − β KL(q ‖ p). `kl` is "analytic" where the divergence has a closed form, or from "draws".

    >>> ELBO().of(torch.tensor([[-3.0]]), torch.tensor([[-1.0]]))
    tensor([-4.])
    """

    beta: float = 1.0
    kl: Literal["analytic", "draws"] = "analytic"
    draws: int = 1

    def validate(self) -> None:
        require(math.isfinite(self.beta) and self.beta >= 0, self, "beta", "0 or more")
        require(is_among(self.kl, ("analytic", "draws")), self, "kl", '"analytic" or "draws"')
        require(is_integer(self.draws), self, "draws", "a positive integer")

    @property
    def count(self) -> int:
        return self.draws

    @property
    def analytic(self) -> bool:
        return self.kl == "analytic"

    def of(self, log_likelihood: Tensor, log_ratio: Tensor) -> Tensor:
        weighted = log_ratio if self.beta == 1 else self.beta * log_ratio
        return (log_likelihood + weighted).mean(0)


class IWAE(Bound):
    """The importance-weighted bound with k draws (Burda, Grosse and Salakhutdinov, 2016).

    >>> IWAE(2).of(torch.tensor([[-3.0], [-1.0]]), torch.tensor([[-1.0], [-3.0]]))
    tensor([-4.])
    """

    k: int = 5

    @classmethod
    def example(cls) -> Self:
        return cls(2)

    def validate(self) -> None:
        require(is_integer(self.k), self, "k", "a positive integer")

    @property
    def count(self) -> int:
        return self.k

    def of(self, log_likelihood: Tensor, log_ratio: Tensor) -> Tensor:
        return torch.logsumexp(log_likelihood + log_ratio, 0) - math.log(self.k)
