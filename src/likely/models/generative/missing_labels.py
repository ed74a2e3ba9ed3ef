"""A density of rows given labels, some of which are missing: they are summed out (Kingma et al., 2014, model M2).

    label known      log p(x | y) + log p(y)                              and, to train it, + α log q(y | x)
    label missing    log p(x)  ≥  Σ_y q(y | x) [ log p(x | y) + log p(y) − log q(y | x) ]

A label is one-hot; one that is missing is all 0. p(y) are the frequencies of the labels that are known.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ...core.random import current_generator
from .ladder import Ladder
from .module import DensityModule
from .vae_module import VAEModule
from .whole_rows import WholeRows

__all__ = ["MissingLabels"]

SUPERVISION = 1.0
"""α in units of rows over labelled rows: what it counts to tell the label of a row."""


class MissingLabels(DensityModule):
    """A VAE given labels, with p(y), and q(y | x) where training rows lack labels (`classifier`)."""

    log_frequency: Tensor
    supervision: Tensor

    def __init__(self, vae: VAEModule, labels: int, classifier: Any) -> None:
        super().__init__()
        self.vae, self.labels = vae, labels
        self.classifier = None if classifier is None else WholeRows(classifier, vae.features.out_shape, labels)
        self.register_buffer("log_frequency", torch.zeros(labels))
        self.register_buffer("supervision", torch.zeros(()))

    def adapt(self, x: Tensor, condition: Tensor | None, weight: Tensor | None) -> None:
        assert condition is not None
        counts = (condition if weight is None else condition * weight.unsqueeze(-1)).sum(0)
        total = float(len(condition) if weight is None else weight.sum())
        self.log_frequency.copy_((counts / counts.sum()).clamp_min(1e-12).log())
        self.supervision.fill_(SUPERVISION * total / float(counts.sum()))
        self.vae.adapt(x, condition, weight)

    # --- labels -------------------------------------------------------------------------------------------------
    def log_labels(self, x: Tensor) -> Tensor:
        """log q(y | x), (n, labels); log p(y) where there is no classifier."""
        if self.classifier is None:
            return self.log_frequency.expand(len(x), -1)
        return torch.log_softmax(self.classifier(self.vae.features(self._whole(x))), -1)

    def label_probabilities(self, x: Tensor, draws: int) -> Tensor:
        """p(y | x), (n, labels): q(y | x), or by Bayes' rule from p(x | y) where there is no classifier."""
        if self.classifier is not None:
            return self.log_labels(x).exp()
        weights = self._of_all(x, lambda rows, told: self.vae.log_prob(rows, told, draws))  # (draws, n, labels)
        return torch.softmax(torch.logsumexp(weights, 0) + self.log_frequency, -1)

    def likely_labels(self, x: Tensor, condition: Tensor) -> Tensor:
        """Conditions with missing labels filled by the most probable ones."""
        gone = self._gone(condition)
        if not bool(gone.any()):
            return condition
        best = self.label_probabilities(x[gone], 1).argmax(-1)
        return condition.masked_scatter(gone.unsqueeze(-1), self._one_hot(best, condition))

    # --- the density --------------------------------------------------------------------------------------------
    def forward(self, x: Tensor, condition: Tensor | None = None) -> Tensor:
        assert condition is not None
        if self.classifier is None:
            return self.vae(x, condition)
        gone = self._gone(condition)
        rows, known = gone.nonzero()[:, 0], (~gone).nonzero()[:, 0]
        log_q = self.log_labels(x)
        named = condition[known]
        own = self.vae(x[known], named)
        own = own + named @ self.log_frequency + self.supervision * (named * log_q[known]).sum(-1)
        by_label = self._of_all(x[rows], self.vae)  # (n, labels)
        missing = (log_q[rows].exp() * (by_label + self.log_frequency - log_q[rows])).sum(-1)
        return torch.cat([own, missing])[torch.cat([known, rows]).argsort()]

    def log_prob(self, x: Tensor, condition: Tensor | None = None, draws: int = 1) -> Tensor:
        """log-weights of p(x | y), or of p(x) = Σ_y p(y) p(x | y) for rows without a label: (draws, n)."""
        assert condition is not None
        gone = self._gone(condition)
        if not bool(gone.any()):
            return self.vae.log_prob(x, condition, draws)
        out = x.new_empty(draws, len(x))
        if not bool(gone.all()):
            out[:, ~gone] = self.vae.log_prob(x[~gone], condition[~gone], draws)
        by_label = self._of_all(x[gone], lambda rows, told: self.vae.log_prob(rows, told, draws))
        out[:, gone] = torch.logsumexp(by_label + self.log_frequency, -1)
        return out

    def sample(self, count: int, condition: Tensor | None = None) -> Tensor:
        return self.drawn(count, condition)[0]

    def drawn(self, count: int, condition: Tensor | None = None) -> tuple[Tensor, Tensor]:
        assert condition is not None
        return self.vae.drawn(count, self._drawn(condition, self.log_frequency.expand(len(condition), -1)))

    def complete(self, x: Tensor, condition: Tensor | None, draws: int) -> Tensor:
        assert condition is not None
        gone = self._gone(condition)
        if not bool(gone.any()):
            return self.vae.complete(x, condition, draws)
        # a label of its own for each draw, from p(y | what is known of x)
        log_labels = self.log_frequency.expand(len(x), -1).clone()
        log_labels[gone] = self.label_probabilities(x[gone], draws).clamp_min(1e-12).log()
        rows = x.repeat(draws, *(1,) * (x.ndim - 1))
        told = self._drawn(condition.repeat(draws, 1), log_labels.repeat(draws, 1))
        return self.vae.complete(rows, told, 1)[0].unflatten(0, (draws, len(x)))

    # --- answers that belong to the VAE -------------------------------------------------------------------------
    def middle(self, x: Tensor, condition: Tensor) -> tuple[Tensor, Tensor]:
        """q(z | x, y), with the most probable label where it is missing."""
        return self.vae.middle(x, self.likely_labels(x, condition))

    def reconstructed(self, z: Tensor, condition: Tensor) -> Tensor:
        """The mean of rows given codes and labels."""
        return self.vae.reconstructed(z, condition)

    def reconstruction(self, x: Tensor, condition: Tensor | None = None, read: Tensor | None = None) -> Tensor:
        """log p(x | z, y) at the mean code; a missing label is told as missing."""
        return self.vae.reconstruction(x, condition, read)

    def encoded(self, x: Tensor, condition: Tensor | None) -> Tensor:
        """What the encoder says of rows, (n, size)."""
        return self.vae.encoded(x, condition)

    @property
    def codes(self) -> Ladder:
        """p(z) and q(z | x, y)."""
        return self.vae.codes

    def clusters(self, x: Tensor, condition: Tensor) -> Tensor:
        """q(component | x, y)."""
        return self.vae.clusters(x, self.likely_labels(x, condition))

    # --- helpers ------------------------------------------------------------------------------------------------
    def _of_all(self, x: Tensor, ask: Any) -> Tensor:
        """What `ask(rows, labels)` gives for rows with every label: (…, n, labels)."""
        rows = x.repeat_interleave(self.labels, 0)
        told = torch.eye(self.labels, dtype=x.dtype, device=x.device).repeat(len(x), 1)
        return ask(rows, told).unflatten(-1, (len(x), self.labels))

    def _whole(self, x: Tensor) -> Tensor:
        """Rows for a classifier that has not seen gaps."""
        if self.vae.missing or not bool(x.isnan().any()):
            return x
        return torch.where(x.isnan(), self.vae.observed.mean(torch.zeros_like(self.vae.observed.offset)).to(x), x)

    def _drawn(self, condition: Tensor, log_labels: Tensor) -> Tensor:
        """Conditions with missing labels drawn."""
        gone = self._gone(condition)
        if not bool(gone.any()):
            return condition
        generator = current_generator(condition.device)
        labels = torch.multinomial(log_labels[gone].exp(), 1, generator=generator)[:, 0]
        return condition.masked_scatter(gone.unsqueeze(-1), self._one_hot(labels, condition))

    def _one_hot(self, labels: Tensor, like: Tensor) -> Tensor:
        return torch.eye(self.labels, dtype=like.dtype, device=like.device)[labels]

    @staticmethod
    def _gone(condition: Tensor) -> Tensor:
        return condition.sum(-1) == 0
