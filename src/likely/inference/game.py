"""A game: several players, each with a loss of its own that depends on the parameters of all of them.

    θᵢ* = argmin  Lᵢ(θᵢ, θ*₋ᵢ)   for every player i

No loss falls for all, so a game has no log-probability of rows: it is played, round by round, by methods that only
need gradients. The joint field F(θ) = (∇₁L₁, …, ∇ₖLₖ) is in general no gradient of anything; where it turns,
simultaneous descent spirals out and `likely.optim.ExtraGradient` does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from ..core.errors import SpecError
from ..core.spec import Spec, as_spec, is_integer, require
from ..optim import Optimizer
from .objective import Objective

__all__ = ["Game", "Player"]


class Player(Spec, axis="player"):
    """Who owns the parameters whose names begin with `name`, and how often and by which optimiser they are updated.

    `optimizer=None` is that of the inference, with a state of its own.

    >>> Player("critic", steps=5)
    Player(name='critic', steps=5)
    """

    name: str
    steps: int = 1
    optimizer: Optimizer | None = None

    @classmethod
    def example(cls) -> Player:
        """One of two."""
        return cls("critic")

    def validate(self) -> None:
        """A name without dots; at least one update in each round."""
        plain = isinstance(self.name, str) and self.name.isidentifier()
        require(plain, self, "name", "the name of a part of the module, such as 'generator'")
        require(is_integer(self.steps), self, "steps", "a positive integer")
        if self.optimizer is not None:
            object.__setattr__(self, "optimizer", as_spec(self.optimizer, Optimizer, "optimizer"))


class Game(Objective):
    """What a game is to an inference: its players, and in which order they move.

    The module gives losses, `module(x[, condition], players=names)` → (len(names),): means over the rows of a batch, of
    those players that are asked for, and of all if `players` is left out. Rows with weights come with `weight=`. Random
    numbers come from `likely.core.random.current_generator`. What needs gradients on the way, such as a gradient
    penalty, takes them under `torch.enable_grad`, since layers may be settled without.

    In a round a player with k `steps` moves k times, each time on a batch of its own; those with fewer steps join in at
    the end of the round. `updates="simultaneous"` moves all who move on a batch from the same point;
    `"alternating"` moves them one after the other in the order of `players`, so that each answers the last move. An
    epoch is as many rounds as the data have batches.

    >>> game = Game("GAN", (Player("critic", steps=5), "generator"), updates="alternating")
    >>> game.names, game.player_of("critic.0.weight")
    (('critic', 'generator'), 'critic')
    >>> game.moves()
    [('critic',), ('critic',), ('critic',), ('critic',), ('critic', 'generator')]
    """

    offers: frozenset[str] = frozenset({"losses"})

    def __init__(
        self,
        name: str,
        players: Sequence[Player | str],
        *,
        updates: Literal["simultaneous", "alternating"] = "simultaneous",
        random: bool = True,
    ) -> None:
        self.name, self.random = name, random
        self.players = tuple(Player(own) if isinstance(own, str) else own for own in players)
        self.names = tuple(player.name for player in self.players)
        if not self.names or len(set(self.names)) < len(self.names):
            raise SpecError(f"{name}: players must be one or more, with different names; found {self.names}.")
        if updates not in ("simultaneous", "alternating"):
            raise SpecError(f'{name}: updates must be "simultaneous" or "alternating"; found {updates!r}.')
        self.updates = updates

    def __repr__(self) -> str:
        return f"{self.name}, {self.updates} game of {', '.join(map(repr, self.players))}"

    def player_of(self, parameter: str) -> str:
        """The player whose parameter this is: its name comes first."""
        player = parameter.partition(".")[0]
        if player not in self.names:
            raise SpecError(f"{self.name} has a parameter {parameter!r} of none of its players {self.names}.")
        return player

    def moves(self) -> list[tuple[str, ...]]:
        """Who moves on each batch of a round."""
        most = max(player.steps for player in self.players)
        return [tuple(own.name for own in self.players if own.steps >= most - batch) for batch in range(most)]
