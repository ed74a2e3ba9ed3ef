"""The matrices of a state-space model that are learned, as real numbers around a first guess.

    matrix or vector    φ = (θ − θ₀) / size of θ₀
    covariance          Σ = LLᵀ:   φᵢᵢ = log Lᵢᵢ − log L⁰ᵢᵢ,   φᵢⱼ = Lᵢⱼ / L⁰ᵢᵢ      (of diagonal ones, φᵢᵢ alone)

A variance that is 0 stays 0.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from ....probability.free_covariance import covariance_of, free_of

__all__ = ["FreeMatrices"]

Params = dict[str, Tensor]

LEAST = 1e-12
"""The least fraction of the first guess's variance that an eigenvalue may have to be written as φ."""


class FreeMatrices:
    """The map between the learned matrices of systems (S, …) and φ (S, …); what is not learned is as in `first`.

    >>> first = {"transition": torch.eye(1), "transition_covariance": torch.tensor([[4.0]])}
    >>> free = FreeMatrices(first, frozenset({"transition_covariance"}), diagonal=False)
    >>> phi = free.to_free({name: value.unsqueeze(0) for name, value in first.items()})
    >>> phi, free.from_free(phi)["transition"].shape
    ({'transition_covariance': tensor([[0.]])}, torch.Size([1, 1, 1]))
    """

    def __init__(self, first: Mapping[str, Tensor], learn: frozenset[str], *, diagonal: bool) -> None:
        self.first, self.diagonal = dict(first), diagonal
        self.names = [name for name in first if name in learn]
        self.alive = {name: (first[name].diagonal() > 0).nonzero()[:, 0] for name in self.names if _is_covariance(name)}

    def to_free(self, params: Params) -> Params:
        """φ of systems."""
        free = {}
        for name in self.names:
            value, first = params[name], self.first[name]
            if not _is_covariance(name):
                free[name] = (value - first) / _size(first)
                continue
            alive = self.alive[name]
            scale = self._scale(name)
            own = value[..., alive, :][..., alive] / (scale.unsqueeze(-1) * scale)
            if self.diagonal:
                free[name] = own.diagonal(dim1=-2, dim2=-1).clamp_min(LEAST).log() / 2
                continue
            free[name] = free_of(own, LEAST)
        return free

    def from_free(self, free: Params) -> Params:
        """Systems of φ."""
        some = next(iter(free.values()))
        params = {name: value.to(some).expand(len(some), *value.shape) for name, value in self.first.items()}
        for name in self.names:
            phi, first = free[name], self.first[name].to(some)
            if not _is_covariance(name):
                params[name] = first + _size(first) * phi
                continue
            alive, scale = self.alive[name], self._scale(name).to(some)
            own = torch.diag_embed((2 * phi).exp()) if self.diagonal else covariance_of(phi, len(alive))
            own = own * (scale.unsqueeze(-1) * scale)
            columns = own.new_zeros(len(own), len(alive), len(first)).index_copy(-1, alive, own)
            params[name] = own.new_zeros(len(own), *first.shape).index_copy(-2, alive, columns)
        return params

    def _scale(self, name: str) -> Tensor:
        return self.first[name].diagonal()[self.alive[name]].sqrt()


def _is_covariance(name: str) -> bool:
    return name.endswith("covariance")


def _size(value: Tensor) -> float:
    size = float(value.abs().mean())
    return size if size > 0 else 1.0
