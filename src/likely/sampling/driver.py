"""The driver of all Markov chains: warm-up, draws into memory or a file, progress, divergences, checkpoints.

    for each step:   state, info = step(state);   in warm-up: state = adapt(state, info);   later: keep every thin-th

A run that was killed is taken up from its checkpoint to the same bits: the file holds the sampler's state, that of the
generator and the draws so far, each tensor in the order in memory that it had.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..core import distributed
from ..core.callbacks import Callbacks, stopped
from ..core.checkpoint import Saver
from ..core.errors import TrainingError
from ..core.progress import progress
from .density import LogDensity
from .sampler import Info, Sampler, State
from .storage import room_for

__all__ = ["Driver", "Length", "own_copy"]


@dataclass(frozen=True)
class Length:
    """How long a run is: `warmup` steps, then `draws` draws, each after `thin` steps."""

    draws: int
    warmup: int
    thin: int = 1

    @property
    def total(self) -> int:
        """All steps."""
        return self.warmup + self.draws * self.thin

    def done(self, index: int) -> int:
        """How many draws there are after `index` steps."""
        return max(0, index - self.warmup) // self.thin


class Driver:
    """One run of a sampler on a log-density: everything that changes in it, so that it can be saved and resumed.

    Call `begin` with the positions (chains, *event) to start from, or `resume` with what `saver.read()` gave; then
    `run`. Afterwards `draws` (chains, draws, *event), `log_prob` (chains, draws) and `stats` hold what was drawn.
    `point` maps positions to what is kept of them; `extra` is what the caller wants to find in the checkpoint.

    >>> from likely.sampling import HMC
    >>> from likely.sampling.density import as_generator, as_log_density
    >>> normal = as_log_density(lambda x: -0.5 * x.square().sum(1), "log_prob")
    >>> driver = Driver(HMC(), normal, as_generator(0), Length(draws=10, warmup=5))
    >>> driver.begin(torch.zeros(3, 2, dtype=torch.float64))
    >>> driver.run()
    >>> driver.draws.shape, driver.log_prob.shape
    (torch.Size([3, 10, 2]), torch.Size([3, 10]))
    """

    draws: Tensor
    log_prob: Tensor
    state: State

    def __init__(
        self,
        sampler: Sampler,
        density: LogDensity,
        generator: torch.Generator,
        length: Length,
        saver: Saver | None = None,
        *,
        stream: str | None = None,
        point: Callable[[Tensor], Tensor] = lambda position: position,
        extra: Mapping[str, Any] | None = None,
        title: str = "sampling",
        verbose: bool = False,
        callbacks: Callbacks = (),
    ) -> None:
        self.sampler, self.density, self.generator, self.length = sampler, density, generator, length
        self.saver = Saver(None, {}) if saver is None else saver
        self.stream, self.point, self.extra = stream, point, dict(extra or {})
        self.title, self.verbose, self.callbacks = title, verbose, callbacks
        self.index, self.divergences, self.stopped = 0, 0, False
        self.stats: dict[str, Tensor] = {}
        self._file: np.memmap[Any, Any] | None = None

    # --- beginning ----------------------------------------------------------------------------------------------
    def begin(self, position: Tensor) -> None:
        """Start anew."""
        self._make_room(position, again=False)
        self.state = self.sampler.init(position, self.density)

    def resume(self, saved: Mapping[str, Any]) -> None:
        """Go on from a checkpoint."""
        position = own_copy(saved["state"]["position"], self.generator.device)
        self._make_room(position, again=True)
        self.index, self.divergences, self.stopped = saved["index"], saved["divergences"], saved["stopped"]
        self.generator.set_state(saved["generator"])
        done = saved["log_prob"].shape[1]
        if saved["draws"] is not None:
            self.draws[:, :done] = saved["draws"]
        self.log_prob[:, :done] = saved["log_prob"]
        for name, value in saved["stats"].items():
            self._stat(name, value)[:, :done] = value
        self.state = _like(self.sampler.init(position, self.density), saved["state"])

    def _make_room(self, position: Tensor, *, again: bool) -> None:
        kept = self.point(position)
        shape = (len(kept), self.length.draws, *kept.shape[1:])
        dtype = torch.float64 if kept.is_floating_point() else torch.int64
        self.draws, self._file = room_for(shape, self.stream, again=again, dtype=dtype)
        self.log_prob = torch.empty(shape[:2], dtype=torch.float64)
        distributed.sum_(torch.zeros(()))  # no process writes to a file that another still makes

    # --- the loop -----------------------------------------------------------------------------------------------
    def run(self) -> None:
        """All steps that are left."""
        warmup, total = self.length.warmup, self.length.total
        with progress(self.title, total, show=self.verbose) as report:
            while self.index < total and not self.stopped:
                self.state, info = self.sampler.step(self.state, self.density, self.generator)
                if self.index < warmup:
                    self.state = self.sampler.adapt(self.state, info, self.index, warmup)
                else:
                    self._keep(info)
                self.index += 1
                if self.verbose or self.callbacks:
                    numbers = self._numbers(info)
                    report(self.index, **numbers)
                    self.stopped = stopped(self.callbacks, self.index, self.index, numbers)
                if self.saver.due():
                    self.save()
        if self.saver.checkpoint is not None:
            self.save()
        if self.stopped:
            self._cut()

    def _cut(self) -> None:
        """Only the draws that there are."""
        done = self.length.done(self.index)
        if not done:
            raise TrainingError(f"A callback ended the chains after {self.index} steps, before there was a draw.")
        self.draws, self.log_prob = self.draws[:, :done], self.log_prob[:, :done]
        self.stats = {name: value[:, :done] for name, value in self.stats.items()}

    def _keep(self, info: Info) -> None:
        """Count what diverged; every thin-th step is a draw."""
        if "diverging" in info.stats:
            self.divergences += int(info.stats["diverging"].sum())
        number, rest = divmod(self.index - self.length.warmup + 1, self.length.thin)
        if rest:
            return
        self.draws[:, number - 1] = self.point(self.state.position).to(self.draws)
        self.log_prob[:, number - 1] = self.state.log_prob
        for name, value in {"acceptance_rate": info.acceptance, **info.stats}.items():
            self._stat(name, value.unsqueeze(1))[:, number - 1] = value

    def _stat(self, name: str, like: Tensor) -> Tensor:
        """The room of a statistic (chains, draws, …), made when it is first met; `like` is (chains, any, …)."""
        if name not in self.stats:
            self.stats[name] = torch.zeros((len(like), self.length.draws, *like.shape[2:]), dtype=like.dtype)
        return self.stats[name]

    def _numbers(self, info: Info) -> dict[str, float]:
        """What is shown beside the bar."""
        numbers = {"acceptance": float(info.acceptance.mean())}
        if "step_size" in info.stats:
            numbers["step_size"] = float(info.stats["step_size"].mean())
        if "diverging" in info.stats:
            numbers["divergences"] = self.divergences
        return numbers

    # --- checkpoints --------------------------------------------------------------------------------------------
    def save(self) -> None:
        """Write all that the rest of the run depends on; draws that lie in a file of their own are only flushed."""
        done = self.length.done(self.index)
        if self._file is not None:
            self._file.flush()
        self.saver.write(
            {
                **self.extra,
                "index": self.index,
                "divergences": self.divergences,
                "stopped": self.stopped,
                "generator": self.generator.get_state(),
                "state": _plain(self.state),
                "draws": self.draws[:, :done].contiguous() if self.stream is None else None,
                "log_prob": self.log_prob[:, :done].contiguous(),
                "stats": {name: value[:, :done].contiguous() for name, value in self.stats.items()},
            }
        )


def _plain(value: Any) -> Any:
    """A state as dicts, lists and tensors. A matrix that lies in memory column by column is kept that way."""
    if isinstance(value, Tensor) and value.ndim == 2 and not value.is_contiguous() and value.T.is_contiguous():
        return {"transposed": value.T}
    if dataclasses.is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return [_plain(part) for part in value] if isinstance(value, tuple | list) else value


def _like(template: Any, saved: Any) -> Any:
    """What `_plain` took apart, put together as the template is."""
    if dataclasses.is_dataclass(template) and not isinstance(template, type):
        names = [field.name for field in dataclasses.fields(template)]
        return dataclasses.replace(template, **{name: _like(getattr(template, name), saved[name]) for name in names})
    if isinstance(template, tuple):
        parts = [_like(part, kept) for part, kept in zip(template, saved, strict=True)]
        return type(template)(*parts) if hasattr(template, "_fields") else tuple(parts)
    if isinstance(template, Tensor):
        return (
            own_copy(saved["transposed"], template.device).T
            if isinstance(saved, dict)
            else own_copy(saved, template.device)
        )
    return saved


def own_copy(saved: Tensor, device: torch.device) -> Tensor:
    """A copy in memory of its own: products depend, in their last bits, on how their numbers lie there."""
    return saved.clone().to(device)
