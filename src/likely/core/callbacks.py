"""Callbacks: functions of the user's that see how a fit goes, and may end it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

__all__ = ["Callbacks", "Epoch", "stopped"]


@dataclass(frozen=True)
class Epoch:
    """What a callback sees after each epoch, or after each step of a method that has none.

    `numbers` are those that the method reports: losses (means per target, and for an ensemble over members), an ELBO, a
    bound, the acceptance of chains, one loss for each player of a game.

    >>> Epoch(3, 24, {"loss": 0.5, "lr": 0.01}).loss
    0.5
    """

    epoch: int
    step: int
    numbers: Mapping[str, float]

    @property
    def loss(self) -> float | None:
        """The loss, where there is one."""
        return self.numbers.get("loss")

    @property
    def validation(self) -> float | None:
        """The loss of held-out rows, if there are any."""
        return self.numbers.get("validation")

    @property
    def lr(self) -> float | None:
        """The learning rate of the last step."""
        return self.numbers.get("lr")


Callbacks = tuple[Callable[[Epoch], bool | None], ...]
"""Called one after the other; one that returns True ends the fit."""


def stopped(callbacks: Callbacks, epoch: int, step: int, numbers: Mapping[str, float]) -> bool:
    """Call all of them; says whether one wants to stop.

    >>> stopped((lambda event: event.step > 5, print), 1, 6, {"loss": 0.5})
    Epoch(epoch=1, step=6, numbers={'loss': 0.5})
    True
    """
    if not callbacks:
        return False
    event = Epoch(epoch, step, dict(numbers))
    answers = [callback(event) for callback in callbacks]
    return any(answer is True for answer in answers)
