"""A start for codes whose prior is a mixture: plain autoencoding, then a Gaussian mixture of the codes.

    max Σ log p(x | z = E_q[z | x])     →     π, μ, σ of a Gaussian mixture of the codes

Components that start in one place get the same gradient and never part, and a code that starts as noise has no groups
in it; after a few epochs of reconstruction the groups of the data show in the code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from ...core.errors import DataError
from ...core.random import current_generator, drawing
from ...inference.latent.em import EM
from ...optim import Adam
from ..mixtures.gaussian_mixture import GaussianMixture
from .latent_priors import MixtureModule

if TYPE_CHECKING:
    from .vae_module import VAEModule

__all__ = ["autoencode", "start_mixture"]

BATCH = 128
RATE = 1e-3
STARTS = 5
"""First guesses of the mixture, of which the best is kept."""
ROWS = 20_000
"""Codes that the mixture is fitted to."""


def autoencode(module: VAEModule, x: Tensor, condition: Tensor | None, weight: Tensor | None, epochs: int) -> None:
    """Raise log p(x | z) at the mean code, for so many epochs."""
    generator = _own_generator()
    parameters = [value for value in module.parameters() if value.requires_grad]
    optimizer = Adam(RATE).build(parameters)
    dtype = module.observed.offset.dtype
    with torch.enable_grad(), drawing(generator):
        for _ in range(epochs):
            for rows in torch.randperm(len(x), generator=generator).split(BATCH):
                batch = x[rows].to(dtype)
                told = None if condition is None else condition[rows].to(dtype)
                mean, _ = module.codes.middle(module.encoded(batch, told))
                value = module.observed.log_prob(module.decoded(mean.unsqueeze(0), told), batch)[0]
                loss = -(value if weight is None else value * weight[rows].to(dtype)).mean()
                optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
    optimizer.zero_grad()


@torch.no_grad()
def start_mixture(module: VAEModule, x: Tensor, condition: Tensor | None) -> None:
    """Let the components of the prior be those of a Gaussian mixture of the codes, and codes as narrow as those."""
    prior = module.codes.prior
    assert isinstance(prior, MixtureModule)
    dtype = module.observed.offset.dtype
    step = max(1, len(x) // ROWS)
    codes = []
    for first in range(0, len(x), ROWS):
        rows = slice(first, first + ROWS, step)
        told = None if condition is None else condition[rows].to(dtype)
        codes.append(module.codes.seen(module.encoded(x[rows].to(dtype), told))[-1][0])
    points = torch.cat(codes).double().cpu().numpy()
    components = len(prior.mean)
    if len(points) < components:
        raise DataError(f"X has {len(points)} rows, too few for the {components} components of the latent prior.")
    seed = int(torch.randint(2**31 - 1, (), generator=_own_generator()))
    rough = EM(max_iter=200, tol=1e-3, starts=STARTS)
    mixture = GaussianMixture(components, covariance="full", inference=rough, random_state=seed).fit(points)
    variances = np.diagonal(mixture.covariances_, axis1=1, axis2=2)  # groups are found with their directions
    prior.start(*(torch.from_numpy(np.array(part)) for part in (mixture.weights_, mixture.means_, variances)))


def _own_generator() -> torch.Generator:
    """One that starts from the current one, and does not go through torch's redirected calls."""
    seed = int(torch.randint(2**31 - 1, (), generator=current_generator()))
    return torch.Generator().manual_seed(seed)
