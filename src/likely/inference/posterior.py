"""A posterior is a weighted set of parameter vectors, stacked along the first axis. Prediction averages over it.

    p(y | x, data) ≈ Σₛ wₛ p(y | η(x; θₛ))

MAP gives one vector, an ensemble five, a Markov chain a thousand.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import zip_longest
from statistics import fmean
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.distributions import Distribution
from torch.func import functional_call
from torch.nn.functional import logsigmoid

from ..core.declared import SIMPLEX
from ..core.errors import ModelFileError
from ..core.files import check_tensors
from ..core.gradients import following
from ..core.layout import laid_out
from ..core.spec import is_integer
from ..core.twins import Twins
from ..core.validation import check_cast
from ..data.rows import Inputs, Rows, row_size
from ..likelihoods.bernoulli import BernoulliDistribution
from ..networks.layers.products import fast_products

__all__ = ["Posterior", "check_draws"]

RECORDED = ("log_prob", "stats", "degrees")
"""Tensors that tell how a fit went, where a divergence may have left infinity; no answer depends on them."""
MOST_DRAWS = 1_000_000
"""Of which a prediction may take the mean."""
BLOCK = 1 << 20
"""Numbers of η computed at once when there are many members or rows."""


class Posterior:
    """Parameter vectors θₛ with weights wₛ for one module.

    `parameters` and `buffers` are dicts of tensors (members, …); `info` is what the inference reports.
    """

    kind: ClassVar[str] = "members"
    extra: ClassVar[tuple[str, ...]] = ()
    """The groups of tensors that it has beside parameters, buffers and weights."""
    kinds: ClassVar[dict[str, type[Posterior]]] = {}

    def __init_subclass__(cls) -> None:
        Posterior.kinds[cls.kind] = cls

    def __init__(
        self,
        module: nn.Module,
        parameters: Mapping[str, Tensor],
        buffers: Mapping[str, Tensor],
        weights: Tensor | None = None,
        info: Mapping[str, Any] | None = None,
    ) -> None:
        self.parameters, self.buffers = self._laid_out(parameters), self._laid_out(buffers)
        self.weights = torch.full((len(self),), 1 / len(self)) if weights is None else laid_out(weights)
        self.info = dict(info or {})
        self.module = copy.deepcopy(module).eval().requires_grad_(False)
        if len(self) == 1:
            state = {name: value[0] for name, value in (self.parameters | self.buffers).items()}
            self.module.load_state_dict(state, strict=False, assign=True)
        self._twins = Twins(self.module)
        self._vmap = True
        self._shared = {name for name, value in self.buffers.items() if bool((value == value[:1]).all())}

    @classmethod
    def of(cls, *modules: nn.Module, weights: Tensor | None = None, info: Mapping[str, Any] | None = None) -> Posterior:
        """The posterior whose members are trained modules of one kind."""
        parameters = {
            name: torch.stack([dict(m.named_parameters())[name].detach() for m in modules])
            for name, _ in modules[0].named_parameters()
        }
        buffers = {
            name: torch.stack([dict(m.named_buffers())[name] for m in modules])
            for name, _ in modules[0].named_buffers()
        }
        return cls(modules[0], parameters, buffers, weights, info)

    @staticmethod
    def _laid_out(values: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """In memory as a file gives them back."""
        return {name: laid_out(value) for name, value in values.items()}

    def __len__(self) -> int:
        return len(next(iter(self.parameters.values()))) if self.parameters else 1

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the parameters, in which predictions are computed."""
        return next((p.dtype for p in self.parameters.values()), torch.float32)

    @property
    def single(self) -> bool:
        """Whether one parameter vector is all there is, so that its η answers for the posterior."""
        return self.kind == "members" and len(self.weights) == 1

    def cast(self, x: Inputs) -> Inputs:
        """Rows as the module takes them: in the dtype of the parameters, or integers as they are."""
        if getattr(self.module, "integer", False):
            return x
        cast = x.to(self.dtype)
        before, after = (part.features if isinstance(part, Rows) else part for part in (x, cast))
        check_cast(before, after)
        return cast

    def eta(self, x: Inputs) -> Tensor:
        """η of every member: (members, n, *positions, size). Gradients go to x, if it asks for them, and to x alone."""
        with following(x):
            x = self.cast(x)
            if len(self) == 1:
                with self.lent() as module:
                    return module(x).unsqueeze(0)
            step = max(1, BLOCK // (len(self) * row_size(x)))
            return torch.cat([self._members(part) for part in x.split(step)], 1)

    def _members(self, x: Inputs) -> Tensor:
        # what all members share (units of inputs and targets) is not batched: rows of sequences and graphs stay plain
        same = {name: self.buffers[name][0] for name in self._shared}
        own = {name: value for name, value in self.buffers.items() if name not in same}
        with self.lent() as module:

            def one(parameters: dict[str, Tensor], buffers: dict[str, Tensor]) -> Tensor:
                return functional_call(module, (parameters, {**buffers, **same}), (x,))

            if self._vmap:
                try:
                    return torch.vmap(one)(self.parameters, own)
                except RuntimeError:  # something in the module cannot be vectorised over members: one by one then
                    self._vmap = False
            return torch.stack([one(*self.member(i)) for i in range(len(self))])

    @contextmanager
    def lent(self) -> Iterator[nn.Module]:
        """The module, for one call alone: threads that predict at the same time do not meet."""
        with self._twins.lent() as module, fast_products():
            yield module

    def member(self, index: int) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Parameters and buffers of one member."""
        return ({k: v[index] for k, v in self.parameters.items()}, {k: v[index] for k, v in self.buffers.items()})

    def module_of(self, index: int) -> nn.Module:
        """A copy of the module with the parameters of one member."""
        parameters, buffers = self.member(index)
        module = copy.deepcopy(self.module)
        own = {name: value.clone() for name, value in (parameters | buffers).items()}
        module.load_state_dict(own, strict=False, assign=True)
        return module

    @staticmethod
    def join(posteriors: Sequence[Posterior]) -> Posterior:
        """All members of several posteriors of one module, with their weights shared out."""
        first = posteriors[0]
        parameters = {k: torch.cat([p.parameters[k] for p in posteriors]) for k in first.parameters}
        buffers = {k: torch.cat([p.buffers[k] for p in posteriors]) for k in first.buffers}
        weights = torch.cat([p.weights for p in posteriors]) / len(posteriors)
        infos = [p.info for p in posteriors]
        return Posterior(first.module, parameters, buffers, weights, {"members": infos} | _history_of(infos))

    def predictive(self, likelihood: Any, x: Inputs) -> Distribution:
        """p(y | x, data): the members' distributions, averaged."""
        return average(likelihood, *self.members(x))

    def members(self, x: Inputs) -> tuple[Tensor, Tensor]:
        """η of every member that counts, (members, n, *positions, size), and how much it does, (members,)."""
        heard = self._heard if self.kind == "members" and not bool((self.weights > 0).all()) else self
        return heard.eta(x), heard.weights

    @cached_property
    def _heard(self) -> Posterior:
        """The members that count: who has no weight is not asked."""
        with torch.inference_mode(False):  # for gradients to pass through it, too
            counts = self.weights > 0
            parameters, buffers = (
                {name: value[counts] for name, value in part.items()} for part in (self.parameters, self.buffers)
            )
            heard = Posterior(self.module, parameters, buffers, self.weights[counts], self.info)
            settled = getattr(heard.module, "settled", None) if heard.single else None
            if callable(settled):
                settled()
        return heard

    # --- files --------------------------------------------------------------------------------------------------
    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Plain data and tensors, for a model file."""
        tensors = {f"parameters.{k}": v for k, v in self.parameters.items()}
        tensors |= {f"buffers.{k}": v for k, v in self.buffers.items()}
        tensors["weights"] = self.weights
        return {"kind": self.kind, "info": self.info}, tensors

    @classmethod
    def restore(cls, module: nn.Module, learned: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Posterior:
        """The inverse of `state`, for the module that the specs build; what does not fit it is refused."""
        parts: dict[str, dict[str, Tensor]] = {"parameters": {}, "buffers": {}}
        for name, value in tensors.items():
            group, _, rest = name.partition(".")
            if group in parts:
                parts[group][rest] = value
            elif group != "weights" and group not in cls.extra:
                raise ModelFileError(f"The file does not fit its own specs: unexpected {name}.")
        weights = tensors["weights"]
        if not weights.is_floating_point() or weights.ndim != 1 or not SIMPLEX.holds(weights.double().numpy()):
            raise ModelFileError("The file does not fit its own specs: the weights of its members must sum to 1.")
        for given, own in (
            (parts["parameters"], module.named_parameters()),
            (parts["buffers"], module.named_buffers()),
        ):
            check_tensors({name: (len(weights), *value.shape) for name, value in own}, given)
        ordered = {name: parts["parameters"][name] for name, _ in module.named_parameters()}
        _check_numbers(tensors, {f"buffers.{name}": buffer.dtype for name, buffer in module.named_buffers()})
        if not isinstance(learned["info"], dict):
            raise ModelFileError("The file does not fit its own specs: its info is not a table by name.")
        return cls(module, ordered, parts["buffers"], weights, learned["info"])


def _history_of(infos: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What members that were trained one by one recorded: at each report the mean over those that came so far.

    >>> _history_of([{"history": {"loss": [4.0, 2.0]}}, {"history": {"loss": [2.0]}}])
    {'history': {'loss': [3.0, 2.0]}}
    """
    histories = [own for own in (info.get("history") for info in infos) if isinstance(own, dict)]
    if len(histories) < len(infos) or any(own.keys() != histories[0].keys() for own in histories):
        return {}
    reports = {name: zip_longest(*(own[name] for own in histories)) for name in histories[0]}
    means = {name: [fmean(v for v in now if v is not None) for now in told] for name, told in reports.items()}
    return {"history": means}


def check_draws(info: Mapping[str, Any]) -> None:
    """Raise a `ModelFileError` unless draws and seed are integers that a prediction can use.

    >>> check_draws({"draws": 0, "seed": 1})
    Traceback (most recent call last):
    likely.core.errors.ModelFileError: The file has draws=0 and seed=1; draws are from 1 to 1,000,000, a seed from 0.
    """
    draws, seed = info.get("draws", 0), info.get("seed", 0)
    if not is_integer(draws) or draws > MOST_DRAWS or not is_integer(seed, 0) or seed >= 2**64:
        raise ModelFileError(
            f"The file has draws={draws!r} and seed={seed!r}; draws are from 1 to {MOST_DRAWS:,}, a seed from 0."
        )


def _check_numbers(tensors: Mapping[str, Tensor], buffers: Mapping[str, torch.dtype]) -> None:
    """Parameters, and what a posterior has beside them, are finite numbers of one dtype; buffers are of their own."""
    kinds = {value.dtype for name, value in tensors.items() if name.startswith("parameters.")}
    if len(kinds) > 1 or not kinds <= {torch.float32, torch.float64}:
        raise ModelFileError(f"The file does not fit its own specs: its parameters are {', '.join(map(str, kinds))}.")
    for name, value in tensors.items():
        if name in buffers and value.is_floating_point() != buffers[name].is_floating_point:
            raise ModelFileError(f"The file does not fit its own specs: {name} is {value.dtype}, not {buffers[name]}.")
        recorded = name.partition(".")[0] in RECORDED
        if value.is_floating_point() and not recorded and not bool(value.isfinite().all()):
            raise ModelFileError(f"The file does not fit its own specs: {name} has values that are not finite.")
        if name.endswith("running_var") and bool((value < 0).any()):
            raise ModelFileError(f"The file does not fit its own specs: {name} has variances below 0.")


def average(likelihood: Any, eta: Tensor, weights: Tensor) -> Distribution:
    """The mixture over the first axis of η: (members, …, size) → a distribution of batch shape (…)."""
    if len(eta) == 1:
        return likelihood.distribution(eta[0])
    weights = weights.to(eta)
    components = likelihood.distribution(eta.movedim(0, -2))
    if likelihood.labels:  # a mixture of distributions over classes is one itself
        return _average_labels(components, weights)
    mixing = torch.distributions.Categorical(probs=weights.expand(components.batch_shape), validate_args=False)
    return torch.distributions.MixtureSameFamily(mixing, components, validate_args=False)


def _average_labels(components: Any, weights: Tensor) -> Distribution:
    """In logarithms, so that a probability too small for a number still has its logarithm."""
    log_weights = weights.log()
    if isinstance(components, torch.distributions.Bernoulli):
        yes, no = (torch.logsumexp(logsigmoid(sign * components.logits) + log_weights, -1) for sign in (1, -1))
        return BernoulliDistribution(logits=yes - no, validate_args=False)
    logits = torch.logsumexp(components.logits + log_weights.unsqueeze(-1), -2)
    return torch.distributions.Categorical(logits=logits, validate_args=False)


Posterior.kinds[Posterior.kind] = Posterior
