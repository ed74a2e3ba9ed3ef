"""The step of MAP on a game: a round, in which every player descends its own loss.

    simultaneous   θᵢ ← θᵢ − γ∇ᵢLᵢ(θ)                     all from the same θ
    alternating    θᵢ ← θᵢ − γ∇ᵢLᵢ(θ₁′, …, θᵢ₋₁′, θᵢ, …)   each from where the players before it have moved to

Optimisers that look ahead go to θₜ₊½ together, and step by the field that they meet there. A game may diverge for no
fault of the data: then the state after the last epoch with finite numbers is kept.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ...core import distributed
from ...core.errors import DivergenceError, SpecError
from ...core.random import normal_like
from ...networks.layers.products import fast_products
from ...optim import Optimizer, clip_norm_
from ..dataset import Batch
from ..game import Game
from ..problem import Problem
from .run import Run
from .truncation import truncated

if TYPE_CHECKING:
    from .map import MAP

__all__ = ["Rounds"]


class Rounds(Run):
    """One run of a game: a part of the flat vector, an optimiser and a mean loss for each player."""

    def __init__(self, problem: Problem, spec: MAP, seeds: list[int]) -> None:
        assert isinstance(problem.objective, Game)
        self.game = problem.objective
        _refuse(self.game, spec)
        super().__init__(problem, spec, seeds, problem.data)
        self.moves = self.game.moves()
        self.epoch_losses = dict.fromkeys(self.game.names, 0.0)  # means over the moves so far
        self.good = self._now()

    def _rules(self) -> list[tuple[Optimizer, Tensor]]:
        """The parameters of a part of a module follow each other, so a player's are one piece of the flat vector."""
        program = self.program
        self.owned: dict[str, list[Tensor]] = {name: [] for name in self.game.names}
        self.gradients: dict[str, Tensor] = {}
        starts: dict[str, int] = {}
        at = 0
        for name, value in program.parameters.items():
            owner = self.game.player_of(name)
            starts.setdefault(owner, at)
            self.owned[owner].append(value)
            at += value.numel()
        rules = []
        for player in self.game.players:
            if player.name not in starts:
                raise SpecError(f"{self.game.name}: its player {player.name!r} has no parameters to train.")
            start, size = starts[player.name], sum(value.numel() for value in self.owned[player.name])
            part, gradient = program.flat[start : start + size], program.gradient[start : start + size]
            part.grad = self.gradients[player.name] = gradient
            rules.append((player.optimizer or self.spec.optimizer, part))
        return rules

    # --- one round ----------------------------------------------------------------------------------------------
    def advance(self, at: int) -> None:
        self._set_rates(at)
        for movers in self.moves:
            batch, fraction = self._take()
            part = len(batch.x) / (fraction * len(self.data))  # this process's part of the batch's rows
            together = [movers] if self.game.updates == "simultaneous" else [(name,) for name in movers]
            for names in together:
                losses = self._move(names, batch, part)
                self._check(losses, at)
                for name, loss in losses.items():
                    steps = self.game.players[self.game.names.index(name)].steps
                    self.epoch_losses[name] += loss / (steps * self.every)
        if self.average is not None:
            self.average.take(self.program.flat, at + 1)
        self.finished = at + 1 == self.length

    def _move(self, names: tuple[str, ...], batch: Batch, part: float) -> dict[str, float]:
        """One update of these players from the same point; gives their losses there."""
        losses = self._evaluate(names, batch, part)
        moving = {name: self._player(name) for name in names}
        ahead = tuple(name for name, (rule, _) in moving.items() if rule.looks_ahead)
        if ahead:
            for name in ahead:
                moving[name][1].look_ahead()  # type: ignore[attr-defined]
            self._evaluate(ahead, batch, part)
        for _, optimizer in moving.values():
            optimizer.step()
        return losses

    def _player(self, name: str) -> tuple[Optimizer, torch.optim.Optimizer]:
        place = self.game.names.index(name)
        return self.rules[place][0], self.optimizers[place]

    def _evaluate(self, names: tuple[str, ...], batch: Batch, part: float) -> dict[str, float]:
        """The losses of these players, with the gradient of each in its own part of the flat gradient."""
        for name in names:
            self.gradients[name].zero_()
        values = self.program.flat.new_zeros(len(names))
        if part:
            losses = self._losses(names, batch) * part
            for place, name in enumerate(names):
                more = place + 1 < len(names)
                losses[place].backward(inputs=self.owned[name], retain_graph=more)  # type: ignore[no-untyped-call]
            values = losses.detach()
        self._add_prior(names)
        if self.world > 1:
            distributed.sum_(values, *(self.gradients[name] for name in names))
        for name in names:
            self._shape(self.gradients[name])
        return dict(zip(names, values.tolist(), strict=True))

    def _losses(self, names: tuple[str, ...], batch: Batch) -> Tensor:
        inputs: Sequence[Any] = self.game.inputs(batch)
        weight = {} if batch.weight is None else {"weight": batch.weight}
        half = self.program.half
        running = fast_products() if half is None else half.running()
        with truncated(self.program.module, self.spec.truncate), running:
            losses = self.program.module(*(inputs if half is None else half.inputs(inputs)), players=names, **weight)
        if losses.shape != (len(names),):
            raise SpecError(
                f"{self.game.name}: a module asked for the losses of {names} gives a tensor of shape "
                f"{tuple(losses.shape)}; a game needs one loss for each: ({len(names)},)."
            )
        return losses.to(self.program.flat.dtype)

    @torch.no_grad()
    def _add_prior(self, names: tuple[str, ...]) -> None:
        """−log p(θᵢ) is a part of player i's loss, as small as one of all rows."""
        program, scale = self.program, 1 / (self.total_weight * self.world)
        if not program.has_prior and program.l1 is None:
            return
        kept = {name: self.gradients[name].clone() for name in self.game.names if name not in names}
        if program.has_prior:
            with torch.enable_grad():
                program.add_prior(scale)
        if program.l1 is not None:
            program.gradient.addcmul_(program.l1, program.flat.sign(), value=scale)
        for name, gradient in kept.items():
            self.gradients[name].copy_(gradient)

    def _shape(self, gradient: Tensor) -> None:
        """What was asked to be done to each player's gradient."""
        if self.spec.clip_norm is not None:
            clip_norm_([gradient], self.spec.clip_norm)
        if self.spec.noise is not None and self.spec.noise.gradients:
            gap = normal_like(gradient)
            distributed.broadcast_(gap)
            gradient.add_(gap, alpha=self.spec.noise.gradients)

    # --- the end of an epoch ------------------------------------------------------------------------------------
    def report(self, at: int) -> dict[str, float]:
        if not bool(self.program.flat.isfinite().all()):
            self._diverged("a parameter is not finite", at - 1)
        self.good = self._now()
        numbers = {f"{name}_loss": loss * self._over(at) for name, loss in self.epoch_losses.items()}
        self.epoch_losses = dict.fromkeys(self.game.names, 0.0)
        return self._record(numbers | {"lr": self.rate})

    def _now(self) -> dict[str, Any]:
        """A copy of what a posterior is made of."""
        average = None if self.average is None else (self.average.mean.clone(), self.average.taken)
        return {"tensors": [value.detach().clone() for value in self._tensors()], "average": average}

    def _check(self, losses: dict[str, float], at: int) -> None:
        for name, loss in losses.items():
            if not math.isfinite(loss):
                self._diverged(f"the loss of the {name} is {loss:g}", at)

    @torch.no_grad()
    def _diverged(self, what: str, at: int) -> None:
        """Go back to the last good state, and say so."""
        for own, kept in zip(self._tensors(), self.good["tensors"], strict=True):
            own.copy_(kept)
        if self.average is not None:
            mean, self.average.taken = self.good["average"]
            self.average.mean.copy_(mean)
        epochs = len(self.history.get("lr", []))
        rules = [rule for rule, _ in self.rules]
        other = "" if any(rule.looks_ahead for rule in rules) else "optimizer=ExtraGradient(…), "
        raise DivergenceError(
            f"{self.game.name} diverged: {what} at step {at + 1} (epoch {at // self.every + 1}) with learning rate "
            f"{self.rate:g}. Try a smaller learning rate, {other}clip_norm=1.0, or standardised inputs. "
            f"The state after epoch {epochs} is kept.",
            self.posterior(),
        )

    # --- state --------------------------------------------------------------------------------------------------
    def state(self) -> dict[str, Any]:
        return super().state() | {"epoch_losses": self.epoch_losses}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self.epoch_losses = state["epoch_losses"]
        self.good = self._now()


def _refuse(game: Game, spec: MAP) -> None:
    """Raise an error that names what of the spec has no meaning where no loss falls for all players."""
    weights = spec.noise is not None and spec.noise.weights > 0
    asked = {"validation": spec.validation, "patience": spec.patience, "tol": spec.tol}
    for name, value in {**asked, "noise": spec.noise if weights else None}.items():
        if value is not None:
            raise SpecError(f"MAP({name}={value!r}): {game.name} is a game, where no loss falls for all; leave it out.")
    for player in game.players:
        rule = player.optimizer or spec.optimizer
        if rule.needs_closure and not rule.looks_ahead:
            raise SpecError(
                f"{rule!r} follows one loss down; {game.name} is a game, with a loss for each player: use Adam, SGD "
                "or ExtraGradient."
            )
