"""What a likelihood is: the distribution of a target y given the numbers η that a network gives for it.

    p(y | η),   η = network(x; θ)

The inverse link lives in `distribution`: η is unconstrained, the distribution's parameters are not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.distributions import Bernoulli, Distribution, constraints
from torch.nn.functional import logsigmoid, pad

from ..core.errors import DataError, ModelFileError
from ..core.spec import Spec
from ..probability.joint import point
from .curvature import curvature
from .mle import newton
from .special import constant
from .weighted import as_given, clean

__all__ = ["Likelihood", "Target"]


@dataclass(frozen=True)
class Target:
    """What one target is: how many numbers it has, how many classes, or the targets it is made of.

    >>> Target.from_json(Target(classes=3).to_json())
    Target(shape=(), classes=3, parts=())
    """

    shape: tuple[int, ...] = ()
    classes: int | None = None
    parts: tuple[Target, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain data, for model files."""
        return {"shape": list(self.shape), "classes": self.classes, "parts": [p.to_json() for p in self.parts]}

    @staticmethod
    def from_json(data: dict[str, Any]) -> Target:
        """The inverse of `to_json`; a `ModelFileError` for what describes no target."""
        shape, classes, parts = data["shape"], data["classes"], data["parts"]
        counts = [*shape, *(() if classes is None else (classes,))]
        if not all(type(count) is int and count >= 1 for count in counts):
            raise ModelFileError(f"The file has targets of shape {shape!r} and {classes!r} classes.")
        return Target(tuple(shape), classes, tuple(Target.from_json(part) for part in parts))


class Likelihood(Spec, axis="likelihood"):
    """A family p(y | η). Shapes: η is (…, size), y is (…, *target.shape), log-probabilities are (…).

    A family of your own needs `size` and `distribution`, and `support` and `needs` if y is not any real number. (The
    underscore keeps this one out of the registry.)

    >>> class _Rayleigh(Likelihood):
    ...     needs = "positive numbers"
    ...     support = constraints.positive
    ...     def size(self, target):
    ...         return 1
    ...     def distribution(self, eta):
    ...         return torch.distributions.Weibull(eta[..., 0].exp(), torch.full_like(eta[..., 0], 2.0))
    >>> _Rayleigh().weighted_mle(torch.tensor([1.0, 7.0]), torch.ones(2)).exp()
    tensor([5.])
    """

    event_dim: ClassVar[int] = 0
    """How many trailing axes of y make one target: 0 for numbers and labels, 1 for vectors."""
    labels: ClassVar[bool] = False
    """Whether a target is a class label 0, 1, …, so that `Classifier` can use it."""
    ordered: ClassVar[bool] = False
    """Whether labels have an order, which `Classifier` must know."""
    numeric: ClassVar[bool] = True
    """Whether a target is a number with a mean, so that `Regressor` can use it."""
    identified: ClassVar[bool] = True
    """Whether enough data tell every number of η; where a component may be without weight, a flat prior is improper."""
    link: ClassVar[str | None] = None
    """What joins η₁ to y: "identity" where an offset of η moves y as it is, "log" where it multiplies the mean."""
    positive: ClassVar[tuple[str, ...]] = ()
    """Arguments that are numbers above 0; those that are "learned" end η as their logarithms, in this order."""
    needs: ClassVar[str] = "real numbers"
    """The support in words, for error messages: `Poisson needs counts 0, 1, 2, …`."""

    # --- the target ---------------------------------------------------------------------------------------------
    def target(self, y: Tensor) -> Target:
        """Describe the targets in y, of shape (n, *positions, *event)."""
        return Target(tuple(y.shape[y.ndim - self.event_dim :]))

    def known_target(self) -> Target | None:
        """The target, if the spec alone determines it; None if its classes or its length come from the data."""
        return Target()

    def bind(self, target: Target) -> Likelihood:
        """The likelihood with what it left to the data (`classes`, `dim`) written down, as this target has it.

        >>> from likely.likelihoods import Categorical, Normal
        >>> Categorical().bind(Target(classes=3)), Categorical(5).bind(Target(classes=3)), Normal().bind(Target())
        (Categorical(classes=3), Categorical(classes=5), Normal())
        """
        decided = {"classes": target.classes, "dim": target.shape[0] if target.shape else None}
        given = self.get_params(deep=False)
        left = {name: value for name, value in decided.items() if value is not None and given.get(name, 0) is None}
        return self.replace(**left) if left else self

    def example_target(self) -> Target:
        """A small target, for examples and tests."""
        return self.known_target() or Target()

    def size(self, target: Target) -> int:
        """How many numbers η describe one target."""
        raise NotImplementedError(f"{type(self).__name__} must say its size")

    def shared(self, target: Target) -> int:
        """How many of those numbers, the last ones, are learned constants instead of functions of x."""
        return 0

    def at_unit_dispersion(self, eta: Tensor, y: Tensor) -> tuple[Likelihood, Tensor, Tensor]:
        """The family with φ = 1 where Var y = φ V(μ), with η and y as that one takes them; else the family itself."""
        return self, eta, y

    def constants(self, shared: Tensor, target: Target) -> dict[str, Tensor]:
        """The learned constants by name, from the last numbers of η: (…, shared) becomes (…,) for each.

        >>> from likely.likelihoods import StudentT
        >>> StudentT(df="learned").constants(torch.tensor([1.0, 2.0]).log(), Target())
        {'scale': tensor(1.), 'df': tensor(2.)}
        """
        names = [name for name in self.positive if getattr(self, name) == "learned"]
        return {name: shared[..., place].exp() for place, name in enumerate(names)}

    def coupling(self, target: Target) -> int:
        """How many learned constants couple the targets at the positions of a row; 0 where they are independent.

        η of such a row has them after all others.
        """
        return 0

    def offsets(self, target: Target) -> int:
        """How many known numbers of a row can join η: 1, its location; 0 where there is none to join."""
        return 1

    def shifted(self, eta: Tensor, offset: Tensor) -> Tensor:
        """η (…, size) with an offset (…, k) added to its first numbers, those that tell where y lies."""
        return eta + pad(offset, (0, eta.shape[-1] - offset.shape[-1]))

    def target_of(self, size: int) -> Target:
        """The target that `size` numbers describe: the inverse of `size`."""
        return Target()

    # --- the distribution ---------------------------------------------------------------------------------------
    def distribution(self, eta: Tensor) -> Distribution:
        """The distribution of y given η of shape (…, size): batch shape (…), event shape that of a target."""
        raise NotImplementedError(f"{type(self).__name__} must give its distribution")

    @property
    def support(self) -> Any:
        """The set of allowed targets, as a torch constraint."""
        return constraints.real

    def log_prob(self, eta: Tensor, y: Tensor) -> Tensor:
        """log p(y | η), of shape (…). An override is a faster closed form, tested against this one."""
        return self.distribution(eta).log_prob(y)

    def each_log_prob(self, eta: Tensor, y: Tensor) -> Tensor:
        """log p(yᵢ | ηₖ) for all pairs: η is (k, size), y is (n, *target.shape), the answer (n, k).

        An override needs less memory, tested against this one.
        """
        return self.log_prob(eta, y.unsqueeze(1))

    def row_log_prob(self, eta: Tensor, y: Tensor) -> Tensor:
        """Σⱼ log p(yᵢⱼ | ηₖⱼ) for rows of c independent targets: η is (k, c, size), y is (n, c), the answer (n, k).

        An override makes fewer passes over the rows, tested against this one.
        """
        return torch.stack([self.log_prob(own, y).sum(1) for own in eta], -1)

    def quick_log_prob(self, eta: Tensor, y: Tensor) -> Tensor:
        """`log_prob` to the digits that gradient training needs, where that is cheaper."""
        return self.log_prob(eta, y)

    def log_likelihood(self, eta: Tensor, y: Tensor) -> Tensor:
        """Σ log p(y | η) over all targets: what training adds up. An override is one kernel instead of three."""
        return self.log_prob(eta, y).sum()

    # --- rows whose positions are coupled -------------------------------------------------------------------------
    def joint_log_prob(self, eta: Tensor, y: Tensor, offsets: Tensor) -> Tensor:
        """log p of all targets of each row together, (…, n), from η (…, T, size + coupling) and y (…, T).

        Rows come one after the other and start at these offsets (n + 1,). What is NaN in y is summed out.
        """
        raise NotImplementedError(f"{type(self).__name__} does not couple the positions of a row")

    def joint(self, eta: Tensor, weights: Tensor, offsets: Tensor, length: int | None = None) -> Distribution:
        """The distribution of whole rows, of batch shape (n,), averaged over members: η is (members, T, …).

        Values are (…, T), or (…, n, length) where all rows have one length.
        """
        raise NotImplementedError(f"{type(self).__name__} does not couple the positions of a row")

    # --- one best value -----------------------------------------------------------------------------------------
    def mean(self, eta: Tensor) -> Tensor:
        """The mean of y given η. An override is a shorter way, tested against this one."""
        return point(self.distribution(eta))

    def probabilities(self, eta: Tensor) -> Tensor:
        """The probability of each class given η: (…, classes), for likelihoods of labels."""
        return of_classes(self.distribution(eta))

    # --- second-order methods -----------------------------------------------------------------------------------
    @property
    def least_squares(self) -> bool:
        """Whether log p(y | η) = −(y − η₁)²/2σ² + const with one σ for all x, so that linear fits are closed forms."""
        return False

    def known_scale(self) -> float | None:
        """σ of a least-squares likelihood, if it is known; None if it is learned."""
        return None

    def derivatives(self, eta: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """log p (n,), its gradient in η (n, size) and a positive semidefinite −Hessian (n, size, size), of n rows.

        log p may leave out what does not depend on η.

        An override is a closed form (or the expected information), tested against this one.
        """
        return curvature(self.log_prob, eta, y)

    def derivatives_in(self, count: int, eta: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The same with the information (n, count, count) about the first numbers of η, the others held.

        A closed form is positive in every block. What is made so by its eigenvalues is not that of a block: numbers of
        different units would be mixed.
        """
        if count == eta.shape[-1] or type(self).derivatives is not Likelihood.derivatives:
            log_prob, score, information = self.derivatives(eta, y)
            return log_prob, score, information[..., :count, :count]
        return curvature(self.log_prob, eta, y, count)

    def value_and_grad(self, eta: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """log p(y | η), of shape (…), and its gradient in η, of shape (…, size): what training without autograd needs.

        Axes of length 1 are stretched, as everywhere. An override is a closed form, tested against this one.
        """
        shape = torch.broadcast_shapes(eta.shape[:-1], y.shape[: y.ndim - self.event_dim])
        with torch.enable_grad():
            point = eta.detach().expand(*shape, eta.shape[-1]).requires_grad_()
            log_prob = self.log_prob(point, y)
            (score,) = torch.autograd.grad(log_prob.sum(), point)
        return log_prob.detach(), score

    def total_and_grad(
        self,
        eta: Tensor,
        y: Tensor,
        weight: Tensor | None = None,
        scale: float = 1.0,
        shared: Tensor | None = None,
    ) -> tuple[float, Tensor, Tensor | None]:
        """Σ w log p(y | η), and its gradients times `scale` in η and in `shared`: a step of training needs no more.

        `shared` are the last numbers of η, apart from the others and with axes of length 1 for what they do not depend
        on. An override takes fewer kernels, tested against this one.
        """
        return total_and_grad(self.value_and_grad, eta, y, weight, scale, shared)

    def indexed(self, y: Tensor) -> Tensor:
        """Targets as `total_and_grad` reads them fastest, converted once for many steps."""
        return y

    def smooth_value_and_grad(self, eta: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """The value and the gradient that belong to the Hessian of `derivatives`: up to a constant, kinks rounded."""
        return self.value_and_grad(eta, y)

    # --- estimates without x ------------------------------------------------------------------------------------
    def weighted_mle(self, y: Tensor, weight: Tensor) -> Tensor:
        """η that maximises Σᵢ wᵢ log p(yᵢ | η); always finite, also where the optimum lies at infinity.

        y is (n, *target.shape). A weight of shape (n,) gives η of shape (size,); weights (n, k) give (k, size), one
        estimate for each of k sets of weights. Missing targets do not count.
        """
        targets, fraction = clean(self, y, weight)
        return as_given(self.estimate(targets, fraction), weight)

    def estimate(self, y: Tensor, fraction: Tensor) -> Tensor:
        """η of shape (k, size) for clean data: y in float64, fractions (n, k) whose columns sum to 1.

        An override is a closed form, tested against this one.
        """
        return newton(self, y, fraction)

    def statistics(self, y: Tensor, origin: Tensor) -> Tensor | None:
        """T(y) of shape (…, m), if the estimate depends on weighted data through Σ w and Σ w T(y) alone; None if not.

        `origin` lies in the middle of the data, one point for all targets or one for each: a T that measures from
        there keeps more digits.
        """
        return None

    def from_statistics(self, mean: Tensor, origin: Tensor) -> Tensor:
        """The estimate η of shape (…, size) from weighted means (…, m) of T(y)."""
        raise NotImplementedError(f"{type(self).__name__} has no sufficient statistics")

    def start(self, y: Tensor, fraction: Tensor) -> tuple[Tensor, Tensor]:
        """A first guess of η from clean data, and the unit that each of its numbers is measured in; both (k, size)."""
        guess = y.new_zeros(fraction.shape[-1], self.size(self.target(y)))
        return guess, torch.ones_like(guess)

    def baseline(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Where training starts: η of the data without x, and the unit each η is measured in, both (size,).

        The unit is 1 except where η lives on the scale of y itself (the location of a Normal): there it is y's
        spread, so that a network with outputs of order 1 suits targets of any scale.
        """
        targets, fraction = clean(self, y, weight)
        return as_given(self.estimate(targets, fraction), weight), as_given(self.start(targets, fraction)[1], weight)

    # --- data at the door ---------------------------------------------------------------------------------------
    def missing(self, y: Tensor) -> Tensor:
        """Which targets do not count because they, or any of their numbers, are NaN; y without its event axes."""
        gone = torch.isnan(y) if y.is_floating_point() else torch.zeros_like(y, dtype=torch.bool)
        return gone.flatten(y.ndim - self.event_dim).any(-1) if self.event_dim else gone

    def placeholder(self, y: Tensor) -> Tensor:
        """A value inside the support that stands in for missing targets (their weight is 0)."""
        return torch.ones((), dtype=y.dtype, device=y.device)

    def check(self, y: Tensor, name: str = "y") -> None:
        """Raise a `DataError` that names the first value outside the support. NaN is a missing target: it passes."""
        if self.support is constraints.real and y.is_floating_point() and bool(y.sum().isfinite()):
            return  # one pass, where nothing can be wrong with a number but that it is infinite
        values = y.to(torch.uint8) if y.dtype == torch.bool else y
        missing = self.missing(values)
        gone = missing.reshape(missing.shape + (1,) * self.event_dim)
        filled = torch.where(gone, self.placeholder(values), values)
        finite = filled.isfinite()
        allowed = self.support.check(filled)  # without the event's axes, if the support has them
        bad = ~(finite & allowed.reshape(allowed.shape + (1,) * (finite.ndim - allowed.ndim)))
        if bool(bad.any()):
            where = tuple(int(i) for i in bad.nonzero()[0])
            value = values[where].item()
            shown = float(f"{value:.7g}") if values.is_floating_point() else value
            fault = f"{name} has {self._fault(value)} ({shown} at row {where[0]})"
            rate = self.link == "log" and self.support.is_discrete and 0 < value < float("inf")
            hint = " For rates, give the counts, and exposure= to fit and predict." if rate else ""
            raise DataError(f"{fault}; {type(self).__name__} needs {self.needs}.{hint}")

    def _fault(self, value: float) -> str:
        if value in (float("inf"), float("-inf")):
            return "an infinite value"
        if value < 0 and not bool(self.support.check(torch.tensor(-1.0)).all()):
            return "a negative value"
        if self.support.is_discrete and value != round(value):
            return "a value that is not an integer"
        return "a value outside the support"


def total_and_grad(
    value_and_grad: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]],
    eta: Tensor,
    y: Tensor,
    weight: Tensor | None,
    scale: float,
    shared: Tensor | None,
) -> tuple[float, Tensor, Tensor | None]:
    """`Likelihood.total_and_grad`, from the values of all targets and their gradients."""
    whole = eta if shared is None else torch.cat([eta, shared.expand(*eta.shape[:-1], shared.shape[-1])], -1)
    value, score = value_and_grad(whole, y)
    if weight is None:
        total, gradient = value.sum(), score * constant(scale, score.dtype, score.device)
    else:
        total, gradient = (value * weight).sum(), score * (weight * scale).unsqueeze(-1)
    if shared is None:
        return total.item(), gradient, None
    own = eta.shape[-1]
    return total.item(), gradient[..., :own], gradient[..., own:].sum_to_size(shared.shape)


def log_of_classes(distribution: Distribution) -> Tensor:
    """The log-probability of each class, (…, classes), up to a constant of each row: of 0 and 1 for a Bernoulli.

    >>> log_of_classes(Bernoulli(logits=torch.tensor(0.0))).exp()
    tensor([0.5000, 0.5000])
    """
    logits: Tensor = distribution.logits  # type: ignore[attr-defined]
    if isinstance(distribution, Bernoulli):
        return torch.stack([logsigmoid(-logits), logsigmoid(logits)], -1)
    return logits


def of_classes(distribution: Distribution) -> Tensor:
    """The probability of each class, (…, classes): of 0 and 1 for a Bernoulli, both with the digits of small ones."""
    probs: Tensor = distribution.probs  # type: ignore[attr-defined]
    return torch.stack([(-distribution.logits).sigmoid(), probs], -1) if isinstance(distribution, Bernoulli) else probs
