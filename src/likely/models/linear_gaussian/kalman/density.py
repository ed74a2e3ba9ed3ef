"""log p(x) of series under a linear-Gaussian state-space model, differentiable in its matrices.

    m⁻ = A m + b,   P⁻ = A P Aᵀ + Q,   S = C P⁻ Cᵀ + R,   log p(x_t | x_<t) = log N(x_t; C m⁻ + d, S)

Series are padded and go side by side, and so do several systems: one step in time is one tensor program. A value that
is missing is seen through a row of zeros in C and noise of variance 1 around 0, which adds nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from ....data.rows import Ragged
from ....likelihoods.special import LOG_2PI
from ....probability.gaussian import factor_or_nan

__all__ = ["series_log_prob"]


def series_log_prob(system: Mapping[str, Tensor], x: Ragged) -> Tensor:
    """log p of each series for each of S systems: (n, S). Matrices have a leading axis of S.

    >>> one = {"transition": [[[1.0]]], "transition_covariance": [[[0.0]]], "observation": [[[1.0]]]}
    >>> one |= {"observation_covariance": [[[1.0]]], "initial_mean": [[0.0]], "initial_covariance": [[[1.0]]]}
    >>> one |= {"transition_offset": [[0.0]], "observation_offset": [[0.0]]}
    >>> system = {name: torch.tensor(value).double() for name, value in one.items()}
    >>> series = Ragged(torch.tensor([[1.0], [2.0]]).double(), torch.tensor([0, 2]))
    >>> joint = torch.distributions.MultivariateNormal(torch.zeros(2), torch.tensor([[2.0, 1.0], [1.0, 2.0]]))
    >>> torch.allclose(series_log_prob(system, series)[0, 0], joint.log_prob(torch.tensor([1.0, 2.0])).double())
    True
    """
    padded, present = x.padded()
    padded = padded.to(system["transition"])
    seen = ~padded.isnan() & present.unsqueeze(-1)  # (n, T, p)
    values = torch.where(seen, padded, 0.0)
    a, q = system["transition"].unsqueeze(1), system["transition_covariance"].unsqueeze(1)  # (S, 1, k, k)
    b, d = system["transition_offset"].unsqueeze(1), system["observation_offset"].unsqueeze(1)
    c, r = system["observation"].unsqueeze(1), system["observation_covariance"].unsqueeze(1)
    mean = system["initial_mean"].unsqueeze(1).expand(-1, len(padded), -1)  # (S, n, k)
    covariance = system["initial_covariance"].unsqueeze(1).expand(-1, len(padded), -1, -1)
    total = mean.new_zeros(mean.shape[:2])
    for t in range(padded.shape[1]):
        if t:
            mean = (a @ mean.unsqueeze(-1)).squeeze(-1) + b
            covariance = a @ covariance @ a.mT + q
        known = seen[:, t].to(mean)  # (n, p)
        look = known.unsqueeze(-1) * c  # (S, n, p, k)
        noise = known.unsqueeze(-1) * known.unsqueeze(-2) * r + torch.diag_embed(1 - known)
        away = known * (values[:, t] - (look @ mean.unsqueeze(-1)).squeeze(-1) - d)
        factor = factor_or_nan(look @ covariance @ look.mT + noise)
        white = torch.linalg.solve_triangular(factor, away.unsqueeze(-1), upper=False)
        spread = torch.linalg.solve_triangular(factor, look @ covariance, upper=False)  # (S, n, p, k)
        log_det = factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        total = total - 0.5 * (white.square().sum((-2, -1)) + LOG_2PI * known.sum(-1)) - log_det
        mean = mean + (spread.mT @ white).squeeze(-1)
        covariance = covariance - spread.mT @ spread
        covariance = 0.5 * (covariance + covariance.mT)
    return total.T
