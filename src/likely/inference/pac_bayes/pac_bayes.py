"""PACBayes: parameters with noise, trained for the smallest bound on the error on new rows.

    q = Normal(μ, diag(σ²)),  p = Normal(θ₀, diag(λ²)),      minimise over μ, σ, λ   (√(R̂(q) + c) + √c)²

    c = (KL(q‖p) + log(2√n/δ)) / 2n,      R̂(q) by reparametrised draws θ = μ + σ ⊙ ε of a bounded loss

θ₀ is the network's random start, which has not seen the rows. What is reported is the tighter kl form of the bound,
with a correction for the draws that R̂(q) is estimated from. It speaks of the randomised predictor, which takes a new
θ ~ q for every prediction.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ...core.callbacks import Callbacks
from ...core.checkpoint import Checkpoint
from ...core.errors import ApproximationWarning, TrainingError
from ...core.random import spread
from ...core.spec import as_spec, is_integer, require, transient
from ...data.rows import Ragged
from ...optim import Adam, Optimizer
from ..gaussian import Gaussian
from ..log_posterior import LogPosterior
from ..parameters import stacked
from ..posterior import Posterior
from ..problem import Inference, Problem
from ..training.engine import Step, optimizer_state, restore_optimizer, train
from .bound import kl_inverse, pac_bayes_bound
from .loss import BoundedLoss
from .start import without_data

__all__ = ["PACBayes"]

WIDEST, RATIO = 10.0, math.exp(0.1)
"""A learned λ is one of WIDEST / RATIO^j, j = 1, 2, …: choosing it costs log(π²j²/6), as each has its part of δ."""
FRACTION = 0.2
"""The part of δ that the estimate of R̂(q) by draws may use."""
BLOCK = 1 << 22


class PACBayes(Inference):
    """Minimise a PAC-Bayes bound; report one that holds with probability ≥ 1 − `delta` for the randomised predictor.

    For labels the bound is on the fraction of wrong labels (0–1 error), and training lowers the clipped log-loss /
    log 2, which is never below it. For other targets it is on the loss 1 / (1 + p(y | η)/p₀(y)) in [0, 1], where p₀ is
    the likelihood fitted without x to a tenth of the rows, which the bound then leaves out: at ½, x is of no help.

    `prior_scale` is λ; None learns it at the price of a union bound. Where `prior=` gives parameters a normal prior,
    its scale is theirs. `steps` of `optimizer` on batches use `samples` draws each; `checks` draws estimate R̂(q) in the
    end, and `draws` members make predictions: their average, which the bound does not speak of but rarely errs more.
    `posterior_.info` has "bound", "empirical", "kl", "delta" and "rows". Each row counts once in the bound, whatever
    its weight; rows are taken to be independent. A fit with a `checkpoint` that was killed resumes to the same bits.

    >>> import numpy as np
    >>> from likely import Classifier
    >>> X = np.random.default_rng(0).normal(size=(400, 2))
    >>> model = Classifier(inference=PACBayes(steps=300), random_state=0).fit(X, X[:, 0] > 0)
    >>> model.posterior_.info["bound"] < 0.3
    True
    """

    needs = frozenset({"likelihood", "alone"})

    prior_scale: float | None = None
    delta: float = 0.05
    optimizer: Optimizer = Adam(0.03)
    steps: int = 1_000
    batch_size: int | None = 512
    samples: int = 2
    checks: int = 2_000
    draws: int = 50
    checkpoint: Checkpoint | str | None = transient()
    callbacks: Callbacks = transient(())

    @classmethod
    def example(cls) -> PACBayes:
        """A few steps."""
        return cls(steps=5, checks=8, draws=3)

    def validate(self) -> None:
        """Counts are positive, δ is a probability; text becomes an optimiser."""
        object.__setattr__(self, "optimizer", as_spec(self.optimizer, Optimizer, "optimizer"))
        fits = self.prior_scale is None or 0 < self.prior_scale < math.inf
        require(fits, self, "prior_scale", "a positive number, or None to learn it")
        require(0 < self.delta < 1, self, "delta", "a probability, above 0 and below 1")
        for name in ("steps", "samples", "checks", "draws"):
            value = getattr(self, name)
            require(is_integer(value), self, name, "a positive integer")
        whole = self.batch_size is None or is_integer(self.batch_size)
        require(whole, self, "batch_size", "a positive integer, or None for all rows at once")
        require(not self.optimizer.needs_closure, self, "optimizer", "one that takes noisy gradients, such as Adam()")

    def fit(self, problem: Problem) -> Posterior:
        """q by gradient steps, then its bound, then members drawn from it."""
        descent = train(lambda seeds: _BoundDescent(self, problem.with_(seed=seeds[0])), problem, [problem.seed], self)
        network, loss, gaussian = descent.network, descent.loss, descent.gaussian.settled()
        if any(getattr(layer, "track_running_stats", False) for layer in network.module.modules()):
            warnings.warn(
                "The network has layers that keep statistics of the rows, so it is not chosen without them and the "
                'bound need not hold; use norm="layer" or none.',
                ApproximationWarning,
                stacklevel=4,
            )
        seeds = spread(network.problem.seed, 3)
        info = self._bound(network.problem, network, loss, gaussian, torch.Generator().manual_seed(seeds[1]))
        with torch.no_grad():
            theta = gaussian.draw(self.draws, torch.Generator().manual_seed(seeds[2]))
        members = {name: value.contiguous() for name, value in network.named(theta).items()}
        return Posterior(network.module, *stacked(network.module, members, self.draws), info=info)

    @torch.no_grad()
    def _bound(
        self, problem: Problem, network: LogPosterior, loss: BoundedLoss, gaussian: _Gaussian, random: torch.Generator
    ) -> dict[str, float]:
        """With δ divided in two: the draws' mean → R̂(q) by Chernoff in kl form, then R̂(q) → R(q) by PAC-Bayes."""
        data = problem.data
        total, count, left = 0.0, 0, self.checks
        one_by_one = isinstance(data.y, Ragged)  # the targets of a row are not independent of each other
        chunk = max(1, min(self.checks, BLOCK // max(1, network.size + data.batch(slice(0, 1024)).y.numel())))
        while left:
            theta = gaussian.draw(min(chunk, left), random)
            left -= len(theta)
            sum_of_losses, count = 0.0, 0
            for batch in data.blocks(rows=1 if one_by_one else 1024):
                losses, weight = loss.exact(network.output(theta, batch), batch.y).double(), batch.weight
                if one_by_one:
                    losses, weight = losses.unsqueeze(1), None if weight is None else weight.unsqueeze(0)
                losses, counted = _of_rows(losses, weight)
                sum_of_losses += float(losses.sum())
                count += counted
            total += sum_of_losses
        estimate = total / (self.checks * count)
        empirical = kl_inverse(min(estimate, 1.0), math.log(1 / (FRACTION * self.delta)) / self.checks)
        kl, delta = float(gaussian.kl()), (1 - FRACTION) * self.delta
        bound = pac_bayes_bound(empirical, kl + gaussian.price, count, delta)
        return {"bound": bound, "empirical": estimate, "kl": kl, "delta": self.delta, "rows": count}


class _BoundDescent(Step):
    """The descent of the bound over μ, log σ and log λ."""

    def __init__(self, spec: PACBayes, problem: Problem) -> None:
        problem, reference = without_data(problem)
        self.spec, self.length, self.data = spec, spec.steps, problem.data
        self.network, self.loss = LogPosterior(problem), BoundedLoss(problem.likelihood, reference)
        self.gaussian = _Gaussian.at(self.network, spec.prior_scale)
        self.optimizer = spec.optimizer.build(self.gaussian.parameters())
        self.random = torch.Generator().manual_seed(spread(problem.seed, 3)[0])
        self.rows, self.weight = len(self.data), self.data.total_weight()
        self.size = min(self.rows, spec.batch_size or self.rows)
        self.price = math.log(2 * math.sqrt(self.rows) / spec.delta)
        self.waiting: list[Tensor] = []
        self.bound = math.nan

    def advance(self, at: int) -> None:
        if not self.waiting:
            order = torch.randperm(self.rows, generator=self.random)
            self.waiting = [part for part in order.split(self.size) if len(part) == self.size]
        batch = self.data.batch(self.waiting.pop().to(self.data.x.device))
        theta = self.gaussian.draw(self.spec.samples, self.random)
        losses = self.loss.smooth(self.network.output(theta, batch), batch.y)  # (samples, b, *positions)
        losses = losses if batch.weight is None else losses * batch.weight
        empirical = losses.sum() / self.spec.samples * (self.rows / self.size / self.weight)
        c = (self.gaussian.kl() + self.price) / (2 * self.rows)
        bound = ((empirical + c).sqrt() + c.sqrt()).square()
        self.optimizer.zero_grad(set_to_none=True)
        bound.backward()
        self.bound = bound.item()
        if not math.isfinite(self.bound):
            raise TrainingError(
                f"The bound is {self.bound:g} at step {at + 1}. Try a smaller learning rate, such as "
                "optimizer=Adam(0.001), or standardised inputs."
            )
        self.optimizer.step()

    def report(self, at: int) -> dict[str, float]:
        return {"bound": self.bound}

    def state(self) -> dict[str, Any]:
        return {
            "gaussian": [value.detach() for value in self.gaussian.parameters()],
            "optimizer": optimizer_state(self.optimizer),
            "random": self.random.get_state(),
            "waiting": self.waiting,
        }

    @torch.no_grad()
    def restore(self, state: dict[str, Any]) -> None:
        for own, kept in zip(self.gaussian.parameters(), state["gaussian"], strict=True):
            own.copy_(kept)
        restore_optimizer(self.optimizer, state["optimizer"])
        self.random.set_state(state["random"])
        self.waiting = state["waiting"]


def _of_rows(losses: Tensor, weight: Tensor | None) -> tuple[Tensor, int]:
    """The mean loss of each row over its targets (draws, rows) → those that have any, and how many rows that is."""
    losses = losses.reshape(*losses.shape[:2], -1)
    if weight is None:
        return losses.mean(-1), losses.shape[1]
    there = (weight.reshape(len(weight), -1) > 0).to(losses)
    seen = there.sum(-1)
    return ((losses * there).sum(-1) / seen.clamp_min(1))[:, seen > 0], int((seen > 0).sum())


@dataclass
class _Gaussian:
    """q = Normal(μ, diag(σ²)) and p = Normal(θ₀, diag(λ²)); λ is `given` or, where that is NaN, one learned number."""

    start: Tensor
    given: Tensor
    mean: Tensor
    log_scale: Tensor
    log_prior: Tensor
    price: float = 0.0

    @classmethod
    def at(cls, network: LogPosterior, prior_scale: float | None) -> _Gaussian:
        start = network.start()
        rates = {name: network.problem.rates(name, value) for name, value in network.named(start).items()}

        def scale_of(name: str) -> float:
            own = rates[name]
            return own.l2**-0.5 if own is not None and own.l2 else prior_scale or math.nan

        given = network.parameters.spread_out(scale_of, start)
        first = torch.where(given.isnan(), 0.1, given)
        log_prior = start.new_tensor(math.log(0.1)).requires_grad_()
        scale = first.clamp_max(0.1).log().requires_grad_()
        return cls(start, given, start.clone().requires_grad_(), scale, log_prior)

    def parameters(self) -> list[Tensor]:
        learned = [self.log_prior] if bool(self.given.isnan().any()) else []
        return [self.mean, self.log_scale, *learned]

    def draw(self, count: int, random: torch.Generator) -> Tensor:
        return Gaussian(self.mean, self.log_scale.exp()).draw(count, random)

    def kl(self) -> Tensor:
        """KL(q‖p) = Σ ½ (σ²/λ² + (μ − θ₀)²/λ² − 1) + log λ/σ."""
        log_prior = torch.where(self.given.isnan(), self.log_prior.clamp(max=math.log(WIDEST)), self.given.log())
        variance = (2 * log_prior.double()).exp()
        spread, moved = (2 * self.log_scale.double()).exp(), (self.mean - self.start).double().square()
        return (0.5 * ((spread + moved) / variance - 1) + log_prior - self.log_scale).sum()

    def settled(self) -> _Gaussian:
        """Without gradients, and with a learned λ moved to the grid that its price is paid for."""
        mean, scale, log_prior = self.mean.detach(), self.log_scale.detach(), self.log_prior.detach()
        if not bool(self.given.isnan().any()):
            return _Gaussian(self.start, self.given, mean, scale, log_prior)
        index = max(1, round((math.log(WIDEST) - float(log_prior)) / math.log(RATIO)))
        log_prior = torch.full_like(log_prior, math.log(WIDEST) - index * math.log(RATIO))
        return _Gaussian(self.start, self.given, mean, scale, log_prior, math.log(math.pi**2 * index**2 / 6))
