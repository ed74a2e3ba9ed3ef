"""log p(θ | data) of many parameter vectors at once, and its gradient: what Markov chains and variational fits ask for.

    log p(θ | data) = Σᵢ wᵢ log p(yᵢ | η(xᵢ; θ)) + log p(θ) + const,      θ (chains, d) → (chains,)

Chains are one tensor axis. A linear network's gradient is written out (Xᵀ times the scores of the likelihood); others
go through automatic differentiation of all chains together.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.func import functional_call

from ..core import distributed
from ..data.rows import row_size
from .dataset import Batch
from .objective import OnEta
from .parameters import FlatParameters, OverMembers
from .predictor import Predictor
from .problem import Problem
from .settle import settle
from .training.batched import batched

__all__ = ["LogPosterior"]

BLOCK = 1 << 22
"""Numbers of x at once, over all chains, where the network is linear: one matrix product."""
WIDEST = 1 << 21
"""Numbers of the widest layer at once, over all chains, of other networks: more are made no faster, and fill memory."""


class LogPosterior:
    """The log-density of the flat, trainable parameters of a problem, up to a constant.

    Calling it gives values; `value_and_grad` gives both. Dropout is off and batch norm uses statistics of the data.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.module: nn.Module = settle(problem.module(), problem)
        self.parameters = FlatParameters.trainable(self.module)
        self.fixed = {k: v for k, v in self.module.state_dict().items() if k not in self.parameters.shapes}
        self.size = self.parameters.size
        self._rates = self._prior_rates()
        self._sparse = self._rates is not None and bool(self._rates[0].any())
        self._stacked = batched(self.module)
        self._each = OverMembers()
        self._cut: dict[int, list[Batch]] = {}
        plain = isinstance(self.module, Predictor) and self.module.linear is not None and not self.module.positions
        plain = plain and isinstance(problem.objective, OnEta)
        self._linear = plain and self.module.offset is None and self.module.unit is None and problem.data.x.ndim == 2
        self._width = 0 if self._linear else _widest(self.module, problem)

    # --- parameters ---------------------------------------------------------------------------------------------
    def start(self) -> Tensor:
        """The parameters that the module has now: (d,)."""
        return self.parameters.flat(dict(self.module.named_parameters()))

    def named(self, theta: Tensor) -> dict[str, Tensor]:
        """Flat vectors (…, d) as named parameters (…, *shape)."""
        return self.parameters.named(theta)

    # --- the density --------------------------------------------------------------------------------------------
    @torch.no_grad()
    def __call__(self, theta: Tensor) -> Tensor:
        return self.log_likelihood(theta) + self.log_prior(theta)

    def value_and_grad(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        """log p(θ | data) + const of each vector (chains,), and its gradient (chains, d)."""
        if self._linear and self._rates is not None:
            return self._by_scores(theta)
        if self._rates is not None and hasattr(self.module, "value_and_grad_of_members"):
            return self._by_module(theta)
        with torch.enable_grad():
            point = theta.detach().requires_grad_()
            value = torch.zeros(len(theta), dtype=theta.dtype, device=theta.device)
            gradient = torch.zeros_like(theta)
            for batch in self._blocks(len(theta)):
                part = self.batch_log_likelihood(point, batch)
                gradient += torch.autograd.grad(part.sum(), point)[0]
                value += part.detach()
            distributed.sum_(value, gradient)
            prior = self.log_prior(point)
            if prior.requires_grad:
                gradient = gradient + torch.autograd.grad(prior.sum(), point)[0]
        return value + prior.detach(), gradient

    def log_likelihood(self, theta: Tensor) -> Tensor:
        """Σ w log p(y | η(x; θ)) of each vector, over all rows of all processes."""
        total = torch.zeros(len(theta), dtype=theta.dtype, device=theta.device)
        for batch in self._blocks(len(theta)):
            total += self.batch_log_likelihood(theta, batch)
        distributed.sum_(total)
        return total

    def batch_log_likelihood(self, theta: Tensor, batch: Batch) -> Tensor:
        """The same over one batch of rows."""
        if self._linear:  # rows before chains: as one matrix product gives them
            eta, y = self._side_by_side(self.named(theta), batch)
            log_prob = self._on_eta.target_log_prob(eta, y).view(len(batch.x), len(theta))
            return (theta.new_ones(len(batch.x)) if batch.weight is None else batch.weight) @ log_prob
        log_prob = self.problem.objective.log_prob(self.output(theta, batch), batch)
        log_prob = log_prob if batch.weight is None else log_prob * batch.weight
        return log_prob.reshape(len(theta), -1).sum(1)

    def log_prior(self, theta: Tensor) -> Tensor:
        """log p(θ) of each vector, up to a constant for priors that are penalties."""
        if self._rates is None:
            return self._each(self.problem.log_prior, self.named(theta))
        l1, l2 = self._rates
        squares = -0.5 * (theta.square() @ l2)
        return squares - theta.abs() @ l1 if self._sparse else squares

    @property
    def held(self) -> bool:
        """Whether the prior of every parameter is normal, so that no direction is left to the data alone."""
        return self._rates is not None and bool((self._rates[1] > 0).all())

    def output(self, theta: Tensor, batch: Batch) -> Tensor:
        """What the module gives for a batch, for each vector: (chains, n, *positions, size)."""
        parameters = self.named(theta)
        inputs = self.problem.objective.inputs(batch)
        x = inputs[0]
        if isinstance(x, Tensor) and self._linear and x.ndim == 2:
            return self._linear_eta(parameters, x).transpose(0, 1)
        if hasattr(self.module, "of_members"):  # a module that takes all chains as they are
            return self.module.of_members(parameters, *inputs)  # type: ignore[operator, no-any-return]
        if isinstance(x, Tensor) and self._stacked is not None:
            buffers = {k: v.expand(len(theta), *v.shape) for k, v in self.fixed.items()}
            return self._stacked({**buffers, **parameters}, buffers, x.expand(len(theta), *x.shape))

        def one(own: Mapping[str, Tensor]) -> Tensor:
            return functional_call(self.module, (dict(own), self.fixed), inputs)

        return self._each(one, parameters)

    # --- helpers ------------------------------------------------------------------------------------------------
    def _linear_eta(self, parameters: Mapping[str, Tensor], x: Tensor) -> Tensor:
        """A linear network by one matrix product for all chains: (n, chains, size)."""
        weight = parameters.get("network.weight", self.fixed.get("network.weight"))
        bias = parameters.get("network.bias", self.fixed.get("network.bias"))
        shared = parameters.get("shared", self.fixed.get("shared"))
        assert weight is not None
        chains = len(next(iter(parameters.values())))
        weight = weight.expand(chains, *weight.shape[-2:])  # (chains, out, d)
        rows, table = len(x), weight.flatten(0, 1).T
        start = None if bias is None else bias.expand(chains, bias.shape[-1]).reshape(-1)
        eta = (x @ table if start is None else torch.addmm(start, x, table)).view(rows, chains, -1)
        if shared is not None:
            eta = torch.cat([eta, shared.expand(rows, chains, shared.shape[-1])], -1)
        return eta

    def _side_by_side(self, parameters: Mapping[str, Tensor], batch: Batch) -> tuple[Tensor, Tensor]:
        """η and y of each row for each chain, (n · chains, …)."""
        eta = self._linear_eta(parameters, batch.x)
        y = batch.y.unsqueeze(1).expand(*eta.shape[:2], *batch.y.shape[1:])
        return eta.flatten(0, 1), y.flatten(0, 1)

    def _by_scores(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        """A linear network: η = x Wᵀ + b, so the gradient in W is Xᵀ times the scores. Sums over rows are products."""
        chains, parameters = len(theta), self.named(theta)
        out = int(self.module.network.out_features)  # type: ignore[union-attr, arg-type]
        value = theta.new_zeros(chains)
        gradient = {name: torch.zeros_like(part) for name, part in parameters.items()}
        for batch in self._blocks(chains):
            rows = len(batch.x)
            log_prob, score = self._on_eta.smooth_value_and_grad(*self._side_by_side(parameters, batch))
            weight = theta.new_ones(rows) if batch.weight is None else batch.weight
            value += weight @ log_prob.view(rows, chains)
            score = score.reshape(rows, chains, -1)
            score = score if batch.weight is None else score * weight.view(-1, 1, 1)
            own = score[..., :out].reshape(rows, -1)  # (n, chains · out)
            if "network.weight" in gradient:
                gradient["network.weight"] += (own.T @ batch.x).view_as(gradient["network.weight"])
            if "network.bias" in gradient:
                gradient["network.bias"] += (theta.new_ones(rows) @ own).view(chains, out)
            if "shared" in gradient:
                gradient["shared"] += score[..., out:].sum(0)
        flat = torch.cat([part.reshape(chains, -1) for part in gradient.values()], 1)
        return self._with_prior(theta, value, flat)

    def _by_module(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        """A module that knows the gradient of its rows: there is no graph of operations to go back through."""
        chains, parameters = len(theta), self.named(theta)
        value, flat = theta.new_zeros(chains), torch.zeros_like(theta)
        for batch in self._blocks(chains):
            part, gradient = self.module.value_and_grad_of_members(parameters, batch.x, batch.weight)  # type: ignore[operator]
            value += part
            flat += self.parameters.flat(gradient)
        return self._with_prior(theta, value, flat)

    def _with_prior(self, theta: Tensor, value: Tensor, gradient: Tensor) -> tuple[Tensor, Tensor]:
        """What is summed over this process's rows, summed over all, and a prior of known rates."""
        distributed.sum_(value, gradient)
        assert self._rates is not None
        l1, l2 = self._rates
        gradient = torch.addcmul(gradient, l2, theta, value=-1)
        return value + self.log_prior(theta), gradient - l1 * theta.sign() if self._sparse else gradient

    def _blocks(self, chains: int) -> list[Batch]:
        """This process's rows in blocks that suit the number of chains; cut once, and kept where that costs little."""
        data = self.problem.data
        rows = max(64, BLOCK // (chains * row_size(data.x)) if self._linear else WIDEST // (chains * self._width))
        if rows in self._cut:
            return self._cut[rows]
        blocks = list(data.blocks(distributed.shard(len(data)), rows))
        if data.rows is None and (data.x.dtype == data.dtype or data.x.numel() <= BLOCK):  # views, or a small copy
            self._cut = {rows: blocks}
        return blocks

    @property
    def _on_eta(self) -> OnEta:
        assert isinstance(self.problem.objective, OnEta)
        return self.problem.objective

    def _prior_rates(self) -> tuple[Tensor, Tensor] | None:
        """The penalty rates of every parameter; None if the prior is not of that form."""
        start = self.start()
        rates = {name: self.problem.rates(name, value) for name, value in self.named(start).items()}
        if any(rate is None for rate in rates.values()):
            return None
        l1, l2 = (
            self.parameters.spread_out(lambda name, kind=kind: getattr(rates[name], kind), start)  # type: ignore[misc]
            for kind in ("l1", "l2")
        )
        return l1, l2


@torch.no_grad()
def _widest(module: nn.Module, problem: Problem) -> int:
    """The width of the widest layer: values per row."""
    if isinstance(width := getattr(module, "width", None), int):
        return width
    few = problem.data.batch(slice(0, min(8, len(problem.data))))
    sizes = [len(few.x) * row_size(few.x)]
    hooks = [
        layer.register_forward_hook(lambda _, __, out: sizes.append(out.numel()) if isinstance(out, Tensor) else None)
        for layer in module.modules()
    ]
    try:
        module(*problem.objective.inputs(few))
    finally:
        for hook in hooks:
            hook.remove()
    return max(sizes) // len(few.x)
