"""The posterior of a variational fit: the distribution q(θ) itself, and draws of it as members.

p(y | x, data) ≈ ∫ p(y | x, θ) q(θ) dθ ≈ 1/S Σₛ p(y | x, θₛ),   θₛ ~ q
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from ...core.errors import ModelFileError
from ...core.files import check_tensors
from ...core.layout import laid_out
from ..gaussian import Gaussian
from ..parameters import FlatParameters
from ..posterior import Posterior, check_draws

__all__ = ["VariationalPosterior"]


class VariationalPosterior(Posterior):
    """A normal distribution of the flat, trainable parameters; its members are `info["draws"]` mirrored draws.

    They come from the seed of the fit, so the same X gets the same answer; a file keeps the distribution alone.
    """

    kind = "variational"
    extra = ("scale", "factor")

    def __init__(
        self,
        module: nn.Module,
        parameters: Mapping[str, Tensor],
        buffers: Mapping[str, Tensor],
        weights: Tensor | None = None,
        info: Mapping[str, Any] | None = None,
        *,
        gaussian: Gaussian,
        trainable: list[str],
    ) -> None:
        scale, factor = (None if part is None else laid_out(part) for part in (gaussian.scale, gaussian.factor))
        self.gaussian, self.trainable = Gaussian(laid_out(gaussian.mean), scale, factor), trainable
        self._one = {name: laid_out(value) for name, value in parameters.items()}
        self._flat = _trained(self._one, trainable)
        count = int((info or {})["draws"])
        generator = torch.Generator().manual_seed(int((info or {})["seed"]))
        members = self._named(self.gaussian.draw(count, generator, mirrored=True))
        shared = {name: value.expand(count, *value.shape[1:]) for name, value in buffers.items()}
        super().__init__(module, members, shared, None, info)

    def draw(self, count: int, generator: torch.Generator | None = None) -> Posterior:
        """`count` new parameter vectors from q, as members of equal weight."""
        buffers = {name: value[:1].expand(count, *value.shape[1:]) for name, value in self.buffers.items()}
        return Posterior(self.module, self._named(self.gaussian.draw(count, generator)), buffers)

    def _named(self, theta: Tensor) -> dict[str, Tensor]:
        """Flat vectors (k, d) as stacked parameters; those that are not trained are the same in all."""
        drawn = self._flat.named(theta)
        same = {name: value.expand(len(theta), *value.shape[1:]) for name, value in self._one.items()}
        return same | drawn

    # --- files --------------------------------------------------------------------------------------------------
    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        learned, _ = super().state()
        mean = self._named(self.gaussian.mean.unsqueeze(0))
        tensors = {f"parameters.{name}": value for name, value in mean.items()}
        tensors |= {f"buffers.{name}": value[:1] for name, value in self.buffers.items()}
        for name in ("scale", "factor"):
            value = getattr(self.gaussian, name)
            if value is not None:
                tensors[name] = value
        return learned | {"trainable": self.trainable}, tensors | {"weights": torch.ones_like(self.weights[:1])}

    @classmethod
    def restore(cls, module: nn.Module, learned: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Posterior:
        mean = Posterior.restore(module, learned, {name: tensors[name] for name in tensors if name not in cls.extra})
        info, trainable = learned["info"], learned["trainable"]
        check_draws(info)
        if not isinstance(trainable, list) or not all(name in mean.parameters for name in trainable):
            raise ModelFileError("The file does not fit its own specs: it names parameters that its network lacks.")
        flat = _trained(mean.parameters, trainable).flat(mean.parameters)[0]
        if len(mean) != 1:
            raise ModelFileError("The file does not fit its own specs: it needs one mean.")
        parts = {name: tensors[name].to(flat.dtype) for name in ("scale", "factor") if name in tensors}
        shapes: dict[str, tuple[int, ...]] = {"scale": (len(flat),)} if "scale" in parts else {}
        if "factor" in parts or not parts:
            columns = parts["factor"].shape[-1] if "factor" in parts and parts["factor"].ndim else 0
            shapes["factor"] = (len(flat), columns)
        check_tensors(shapes, parts)
        if not all(bool(value.isfinite().all()) for value in parts.values()):
            raise ModelFileError("The file does not fit its own specs: its covariance is not finite.")
        gaussian = Gaussian(flat, parts.get("scale"), parts.get("factor"))
        return cls(module, mean.parameters, mean.buffers, info=info, gaussian=gaussian, trainable=trainable)


def _trained(parameters: Mapping[str, Tensor], trainable: list[str]) -> FlatParameters:
    """Those of stacked parameters (1, …) that q is about, in the order of the module."""
    return FlatParameters({name: tuple(v.shape[1:]) for name, v in parameters.items() if name in trainable})
