"""MAP: the most probable parameters, by gradient training.

    θ̂ = argmin  −Σᵢ wᵢ log p(yᵢ | η(xᵢ; θ)) − log p(θ)

Each mini-batch gives an unbiased estimate of that sum divided by Σw. With a flat prior this is maximum likelihood. L1
terms of the prior are met by proximal steps, so that weights reach exactly 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal

from ...core.callbacks import Callbacks
from ...core.checkpoint import Checkpoint, beside
from ...core.spec import Spec, as_spec, require, transient
from ...optim import Adam, Optimizer, Schedule
from ..game import Game
from ..posterior import Posterior
from ..problem import Inference, Problem
from .averaging import Average
from .descent import Descent
from .engine import train
from .program import stackable
from .rounds import Rounds
from .truncation import Truncation

__all__ = ["MAP", "Held", "Noise"]


class Noise(Spec, axis="noise"):
    """Standard deviations of Gaussian noise added in training: to inputs, weights, or gradients.

    >>> MAP(noise=Noise(inputs=0.1)).noise
    Noise(inputs=0.1)
    """

    inputs: float = 0.0
    weights: float = 0.0
    gradients: float = 0.0

    def validate(self) -> None:
        """None is negative."""
        for name in ("inputs", "weights", "gradients"):
            require(getattr(self, name) >= 0, self, name, "0 or more")


class Held:
    """Data or a model inside a spec: compared by identity, never written to files."""

    def __init__(self, *parts: Any) -> None:
        self.parts = parts

    def __repr__(self) -> str:
        return "(…)"

    def to_json(self) -> None:
        return None


class MAP(Inference):
    """Gradient training to the most probable θ.

    `validation` (a fraction of the rows, or `(X, y)`) is scored after each epoch and the best weights are kept;
    `patience` stops after that many epochs without a better score (with 10 % of the rows, if no validation is given).
    Batches are cut from a new order of the rows in each epoch, or drawn anew each time with `replacement`.
    `tol` stops a full-batch fit once ‖∇‖ ≤ tol. `checkpoint` is a path: a fit that was killed resumes from it to
    the same bits. A callback gets an `Epoch` and stops the fit by returning True. `augment` changes each batch: one of
    `likely.data.augment`, or a function x → x. `truncate` says how far gradients go back through the steps of a
    sequence in RNN, GRU and LSTM: an integer cuts them every so many steps.

    On a `Game` each player has its own state of `optimizer` (see `Player`), and an epoch reports one loss for each.

    `average` gives an average of the weights on the way, `EMA()` or `SWA()`, in place of the last ones.
    `precision="bfloat16"` runs the network in 16 bits where the processor has units for it; weights stay in float32.
    It pays for wide convolutions and costs elsewhere (see the guide), so nobody gets it unasked.
    `steps` says how many updates there are in place of `epochs`, where the last epoch need not be a whole one.

    >>> from likely import Regressor
    >>> from likely.likelihoods import Normal
    >>> from likely.optim import SGD
    >>> model = Regressor(Normal(scale=1.0), inference=MAP(SGD(0.1), epochs=200, batch_size=None))
    >>> model.fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]).predict([[3.0]]).round(1)
    array([7.])
    """

    needs: ClassVar[frozenset[str]] = frozenset({"losses"})
    descends: ClassVar[bool] = True

    optimizer: Optimizer = Adam()
    epochs: int = 200
    batch_size: int | None = 128
    replacement: bool = False
    schedule: Schedule | None = None
    clip_norm: float | None = None
    tol: float | None = None
    patience: int | None = None
    validation: Any = None
    noise: Noise | None = None
    truncate: Truncation | None = None
    average: Average | None = None
    precision: Literal["float32", "bfloat16"] = "float32"
    steps: int | None = None
    augment: Callable[[Any], Any] | None = transient()
    checkpoint: Checkpoint | str | None = transient()
    callbacks: Callbacks = transient(())

    @classmethod
    def example(cls) -> MAP:
        """A few steps."""
        return cls(epochs=3, batch_size=16)

    def validate(self) -> None:
        """Sizes are positive; text becomes specs; a number for noise means inputs, for truncate fixed runs."""
        set_ = object.__setattr__
        set_(self, "optimizer", as_spec(self.optimizer, Optimizer, "optimizer"))
        if self.schedule is not None:
            set_(self, "schedule", as_spec(self.schedule, Schedule, "schedule"))
        if isinstance(self.noise, int | float):
            set_(self, "noise", Noise(inputs=float(self.noise)))
        if isinstance(self.truncate, int):
            set_(self, "truncate", Truncation(self.truncate))
        elif self.truncate is not None:
            set_(self, "truncate", as_spec(self.truncate, Truncation, "truncate"))
        if self.average is not None:
            set_(self, "average", as_spec(self.average, Average, "average"))
        require(self.precision in ("float32", "bfloat16"), self, "precision", '"float32" or "bfloat16"')
        if isinstance(self.validation, tuple):
            set_(self, "validation", Held(*self.validation))
        require(isinstance(self.epochs, int) and self.epochs > 0, self, "epochs", "a positive integer")
        counted = self.steps is None or (isinstance(self.steps, int) and self.steps > 0)
        require(counted, self, "steps", "a positive integer, or None for whole epochs")
        whole = self.batch_size is None or (isinstance(self.batch_size, int) and self.batch_size > 0)
        require(whole, self, "batch_size", "a positive integer, or None for all rows at once")
        require(isinstance(self.replacement, bool), self, "replacement", "True or False")
        require(self.clip_norm is None or self.clip_norm > 0, self, "clip_norm", "positive or None")
        require(self.tol is None or self.tol > 0, self, "tol", "positive or None")
        require(self.patience is None or self.patience > 0, self, "patience", "a positive number of epochs or None")
        given = self.validation is None or isinstance(self.validation, Held)
        fraction = isinstance(self.validation, float) and 0 < self.validation < 1
        require(given or fraction, self, "validation", "a fraction between 0 and 1, or (X, y)")

    def fit(self, problem: Problem) -> Posterior:
        """One parameter vector."""
        return self._train(problem, [problem.seed])

    def fit_members(self, problem: Problem, seeds: list[int]) -> Posterior:
        """All members as one stacked program, if the optimiser and the network allow it."""
        alike = self.truncate is None and self.optimizer.elementwise  # cuts are drawn for each member by itself
        alike = alike and not isinstance(problem.objective, Game)
        first = problem.with_(seed=seeds[0])
        if len(seeds) > 1 and alike and stackable(first):
            return self._train(first, seeds)
        return Posterior.join([self._of_member(i).fit(problem.with_(seed=seed)) for i, seed in enumerate(seeds)])

    def _train(self, problem: Problem, seeds: list[int]) -> Posterior:
        kind = Rounds if isinstance(problem.objective, Game) else Descent
        return train(lambda own: kind(problem, self, own), problem, seeds, self).posterior()

    def _of_member(self, index: int) -> MAP:
        """The same training, with a checkpoint of its own: run.ckpt becomes run.ckpt.0, run.ckpt.1, …"""
        return self if self.checkpoint is None else self.replace(checkpoint=beside(self.checkpoint, str(index)))
