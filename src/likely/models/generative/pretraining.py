"""A start for codes whose prior is a mixture: plain autoencoding, then a Gaussian mixture of the codes.

    max Σ log p(x | z = E_q[z | x̃])     →     π, μ, Σ of a Gaussian mixture of the codes z ~ q(z | x)

x̃ is x, or x corrupted in ways that leave its group as it is: then the code has no place for them, and groups show
that they would hide (a digit is the same one when turned a little).

Components that start in one place get the same gradient and never part, and a code that starts as noise has no groups
in it; after a few epochs of reconstruction the groups of the data show in the code.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ...core.errors import DataError, LikelyWarning
from ...core.quiet import quiet
from ...core.random import redirected, spread
from ...inference import MAP, Problem
from ...inference.dataset import Dataset
from ...inference.latent.em import EM
from ...optim import Adam, Cosine
from ...priors import Flat
from ..mixtures.gaussian_mixture import GaussianMixture
from .latent_priors import BATCH, MixtureModule

__all__ = ["Pretrained", "start_mixture"]

RATE = 2e-3
STARTS = 20
"""First guesses of the mixture, of which the most probable is kept."""
ROWS = 20_000
"""Codes that the mixture is fitted to."""


class Pretrained:
    """Builds modules that have been autoencoders for so many epochs; each seed is trained once.

    Rows are `shown` to the mixture as they are to the model, and changed anew in each batch by `augment` before.
    The encoder reads what `corrupt` makes of them.
    """

    def __init__(self, problem: Problem, epochs: int, augment: Any, shown: Tensor, corrupt: Any = None) -> None:
        self.problem, self.shown, self.corrupt = problem, shown, corrupt
        self.training = MAP(Adam(RATE), epochs=epochs, batch_size=BATCH, schedule=Cosine(), augment=augment)
        self.starts: dict[int, dict[str, Tensor]] = {}

    def __call__(self, seed: int) -> nn.Module:
        module = self.problem.build(seed)
        if seed not in self.starts:
            self.starts[seed] = self._start(seed)
        module.load_state_dict(self.starts[seed])
        return module

    def _start(self, seed: int) -> dict[str, Tensor]:
        plain = self.problem.with_(
            build=lambda own: _Autoencoding(self.problem.build(own), self.corrupt),
            seed=seed,
            prior=Flat(),
            verbose=False,
        )
        module: Any = self.training.fit(plain).module_of(0).inner  # type: ignore[union-attr]
        data = self.problem.data
        rows = Dataset(self.shown.to(data.x.device), None, None, data.dtype, condition=data.condition)
        start_mixture(module, rows, spread(seed, 3)[2])
        return {name: value.detach().clone() for name, value in module.state_dict().items()}


class _Autoencoding(nn.Module):
    """What is trained before the fit: log p of a row given its mean code, or that of a corrupted row."""

    def __init__(self, module: Any, corrupt: Any) -> None:
        super().__init__()
        self.inner, self.corrupt = module, corrupt

    def forward(self, x: Tensor, condition: Tensor | None = None) -> Tensor:
        if self.corrupt is None:
            return self.inner.reconstruction(x, condition)  # type: ignore[no-any-return, operator]
        with redirected():
            read = self.corrupt.change(x)
        return self.inner.reconstruction(x, condition, read)  # type: ignore[no-any-return, operator]


@torch.no_grad()
def start_mixture(module: Any, data: Dataset, seed: int) -> None:
    """Let the components of the prior be those of a Gaussian mixture of the codes of these rows.

    Means of q are mixed, and Σ_c = Cov_c(μ) + E_c[diag σ²]: without the second term a group of near means would have a
    component narrower than q, which then explains its codes worse than a wide component far away.
    """
    prior = module.codes.prior
    assert isinstance(prior, MixtureModule)
    step = max(1, len(data) // ROWS)
    batches = [data.batch(slice(first, first + ROWS, step)) for first in range(0, len(data), ROWS)]
    codes = [module.codes.seen(module.encoded(batch.x, batch.condition))[-1] for batch in batches]
    points, log_scale = (torch.cat(part).double().cpu().numpy() for part in zip(*codes, strict=True))
    components = len(prior.mean)
    if len(points) < components:
        raise DataError(f"X has {len(points)} rows, too few for the {components} components of the latent prior.")
    rough = EM(max_iter=200, tol=1e-3, starts=STARTS)
    with quiet(LikelyWarning):  # of groups of codes that are flat: q gives them a width below
        mixture = GaussianMixture(components, covariance="full", inference=rough, random_state=seed).fit(points)
    belongs = mixture.predict_proba(points)
    within = (belongs.T @ np.exp(2 * log_scale)) / np.maximum(belongs.sum(0), 1e-6)[:, None]
    covariances = mixture.covariances_ + within[:, :, None] * np.eye(points.shape[1])
    parts = (mixture.weights_, mixture.means_, covariances)
    prior.start(*(torch.from_numpy(np.array(part)) for part in parts))
