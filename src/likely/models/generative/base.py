"""Generative models: p(x; θ) or p(x | condition; θ) with a network inside, and the questions that all of them answer.

log p(x | data) = log Σₛ wₛ p(x; θₛ)      x ~ p( · ; θₛ),  s ~ w
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from ...core.draws import count_of
from ...core.errors import DataError
from ...core.random import isolated, seed_of, spread
from ...core.threads import threads_for
from ...core.validation import check_cast
from .fitting import _Fitting
from .module import ask, with_error

__all__: list[str] = []

BLOCK = 1 << 22
"""Numbers that a block of rows may have in the widest layer, over all draws of a row."""
LEAST = 16
"""Rows of a block, at least."""
FILLED = 64
"""Draws whose mean fills a missing value."""


class _Generative(_Fitting):
    """What every generative model answers: averages over the members of its posterior, rows in the form of X."""

    # --- questions ----------------------------------------------------------------------------------------------
    def log_prob(
        self,
        X: Any,
        condition: Any = None,
        *,
        draws: int | None = None,
        random_state: Any = None,
        return_error: bool = False,
    ) -> Any:
        """log p(x) of each row, (n,): exact, a bound, or an estimate, as `log_prob_kind_` says.

        Where it is found by draws, `draws` says by how many and `return_error=True` adds the standard error of each
        row; an exact one has error 0.
        """
        x, given = self._asked(X, condition)
        count = self._draws(draws)
        members = []
        for member, log_weight in enumerate(self.posterior_.weights.double().log().tolist()):
            rows, error = self._member_log_prob(member, x, given, count, self._seed_of_question(random_state, member))
            members.append((rows + log_weight, error))
        log_probs, error = (torch.stack(part) for part in zip(*members, strict=True))
        total = torch.logsumexp(log_probs, 0)
        if not return_error:
            return total.numpy()
        fraction = (log_probs - total).exp()  # of p(x) that each member has
        return total.numpy(), (fraction * error).square().sum(0).sqrt().numpy()

    def _draws(self, draws: int | None) -> int:
        """How many draws estimate log p; 1 where none are needed."""
        if draws is not None and self.log_prob_kind_ == "exact":
            raise DataError(f"{type(self).__name__} has the exact log_prob: it takes no draws.")
        return 1 if draws is None else count_of(draws, "draws")

    def _seed_of_question(self, random_state: Any, member: int) -> int:
        """Answers that need draws are the same at every call, unless a seed is given."""
        return spread(0 if random_state is None else seed_of(random_state), member + 1)[member]

    def _member_log_prob(
        self, member: int, x: Tensor, condition: Tensor | None, draws: int, seed: int
    ) -> tuple[Tensor, Tensor]:
        """log p and its standard error under one member."""
        values, errors = [], []
        step = self._block(draws)
        with self._question(seed), threads_for(self._footprint()[0] * draws * min(step, len(x))):
            for first in range(0, len(x), step):
                rows = slice(first, first + step)
                given = None if condition is None else condition[rows]
                answer = ask(self.posterior_, member, "log_prob", x[rows], given, draws)
                value, error = answer if isinstance(answer, tuple) else with_error(answer.double())
                values.append(value.double())
                errors.append(error.double())
        return torch.cat(values).cpu(), torch.cat(errors).cpu()

    def score(self, X: Any, condition: Any = None, sample_weight: Any = None) -> float:
        """The mean of log p(x), in nats per row."""
        return float(np.average(self.log_prob(X, condition), weights=sample_weight))

    def sample(
        self, n: int = 1, condition: Any = None, random_state: Any = None, *, return_hidden: bool = False
    ) -> Any:
        """n new rows, in the form of X; with `return_hidden` also their codes, where the model has them.

        For a model fitted with a condition, `condition` has one row, or n. Otherwise it fixes some columns: a dict or
        a table of their values, or rows with NaN where the model is to choose.
        """
        check_is_fitted(self)
        count = count_of(n)
        seed = self._seed(random_state)
        if self.condition_ is None and condition is not None:
            return self.form_.given(self._completed(self.form_.fixed(condition, count), None, 1, seed)[0])
        new, hidden = self._drawn(count, seed, self._spread_condition(condition, count))
        return (new, hidden) if return_hidden and hidden is not None else new

    def _drawn(self, count: int, seed: int, *given: Tensor | None) -> tuple[Any, np.ndarray | None]:
        """New rows in the form of X, with their codes, from what is given of each row (None if nothing is)."""
        parts: list[tuple[Tensor, Tensor | None]] = []
        owners = self._members_of(count, seed)
        step = self._block()
        for member, rows in owners:
            work = self._footprint()[0] * min(step, len(rows))
            with self._question(spread(seed, member + 2)[member + 1]), threads_for(work):
                for block in rows.split(step):
                    own = [None if part is None else part[block] for part in given]
                    parts.append(ask(self.posterior_, member, "drawn", len(block), *own))
        order = torch.cat([rows for _, rows in owners]).argsort()
        new = self.form_.given(self._as_recorded(torch.cat([self._cpu(x) for x, _ in parts])[order]))
        hidden = [self._cpu(code) for _, code in parts if code is not None]
        return new, torch.cat(hidden)[order].numpy() if hidden else None

    def impute(self, X: Any, draws: int | None = None, random_state: Any = None, *, condition: Any = None) -> Any:
        """X with each NaN filled by its mean given the rest of the row (a label by the most probable one).

        With `draws`, so many fillings drawn from that distribution: (draws, n, …), or a list of tables.
        """
        x, given = self._asked(X, condition, cast=False)
        x = x.double()
        if draws is not None:
            filled = self._completed(x, given, count_of(draws, "draws"), self._seed(random_state))
            return [self.form_.given(rows) for rows in filled] if self.form_.columns else filled.numpy()
        seed, out = self._seed_of_question(random_state, 0), x.clone()
        blocks = x.flatten(1).isnan().any(1).nonzero().ravel().split(self._filled_together(FILLED))
        for number, rows in enumerate(blocks if x.isnan().any() else ()):
            own = None if given is None else given[rows]
            filled = self._completed(x[rows], own, FILLED, spread(seed, number)[-1] if number else seed)
            out[rows] = self._summary(x[rows], filled)
        return self.form_.given(out, x.isnan())

    def _summary(self, x: Tensor, filled: Tensor) -> Tensor:
        """The mean of draws (draws, n, *shape) where x is missing; for labels the most frequent one."""
        flat, out = filled.flatten(2), x.flatten(1).clone()
        gaps = out.isnan()
        mean = flat.mean(0)
        for part in self.columns_.parts:
            if part.likelihood.labels:
                mean[:, part.columns] = flat[:, :, part.columns].mode(0).values
        return torch.where(gaps, mean, out).unflatten(1, self.form_.shape)

    def _completed(self, x: Tensor, condition: Tensor | None, draws: int, seed: int) -> Tensor:
        """Rows with NaN filled by draws, (draws, n, *shape)."""
        out = x.expand(draws, *x.shape).clone()
        rows = x.flatten(1).isnan().any(1).nonzero().ravel()
        if not len(rows):
            return out
        self.columns_.check(x.flatten(1))
        step = self._filled_together(draws)
        for member, own in self._members_of(draws, seed):
            with self._question(spread(seed, member + 2)[member + 1]):  # once: blocks do not share their draws
                for part in rows.split(step):
                    given = None if condition is None else condition[part]
                    inputs = self._placed(x[part])
                    new = self._cpu(ask(self.posterior_, member, "complete", inputs, given, len(own)))
                    out[own[:, None], part] = torch.where(x[part].isnan(), self._as_recorded(new), x[part])
        return out

    def _filled_together(self, draws: int) -> int:
        """Rows that are filled at once."""
        return max(1, BLOCK // (self._footprint()[1] * draws))

    # --- helpers ------------------------------------------------------------------------------------------------
    def _block(self, draws: int = 1) -> int:
        """Rows that are asked about together, with so many draws of each."""
        return max(LEAST, BLOCK // (self._footprint()[1] * draws))

    def _in_blocks(self, rows: int, answer: Callable[[slice], Tensor], *, draws: int = 1, axis: int = 0) -> Tensor:
        """`answer(block)` of blocks of so many rows, one after the other; `axis` of an answer is that of the rows.

        What is made of a block on its way through the network is bounded, however many rows there are.
        """
        step = self._block(draws)
        with threads_for(self._footprint()[0] * draws * min(step, rows)):
            whole = answer(slice(0, step))
            if rows <= step:
                return whole
            shape = list(whole.shape)
            shape[axis] = rows
            whole, first = whole.new_empty(shape), whole
            whole.narrow(axis, 0, step).copy_(first)
            for start in range(step, rows, step):
                part = answer(slice(start, start + step))
                whole.narrow(axis, start, part.shape[axis]).copy_(part)
            return whole

    def _question(self, seed: int) -> AbstractContextManager[Any]:
        """Where a question's random numbers come from: all of them, whoever draws.

        A model whose code asks for the current generator itself has `drawing` here: that costs nothing.
        """
        return isolated(seed)

    def _as_recorded(self, x: Tensor) -> Tensor:
        """Draws in the numbers that columns of a table were recorded in, unless a likelihood says what they are."""
        told = not isinstance(getattr(self, "likelihood", "auto"), str)
        return x if told else self.form_.as_recorded(x)

    def _asked(self, X: Any, condition: Any, *, cast: bool = True) -> tuple[Tensor, Tensor | None]:
        check_is_fitted(self)
        x = self.form_.rows(self, X)
        given = self._conditions(condition, len(x))
        self.columns_.check(x.flatten(1))
        if cast and not self._marginalises() and x.is_floating_point() and bool(x.isnan().any()):
            raise DataError(self._gaps())
        return (self._placed(x) if cast else x), None if given is None else self._placed(given)

    def _placed(self, x: Tensor) -> Tensor:
        placed = x.to(self.posterior_.weights.device, self.posterior_.dtype)
        check_cast(x, placed)
        return placed

    @staticmethod
    def _cpu(x: Tensor) -> Tensor:
        return x.detach().cpu().double()

    def _spread_condition(self, condition: Any, count: int) -> Tensor | None:
        """One condition for all new rows, or one for each."""
        if self.condition_ is None:
            return None
        single = isinstance(condition, str | int | float | bool | np.generic)
        given = self.condition_.encode([condition] if single else condition)
        if len(given) not in (1, count):
            raise DataError(f"condition has {len(given)} rows; it must have 1, or n = {count}.")
        return self._placed(given.expand(count, *given.shape[1:]) if len(given) == 1 else given)

    def _members_of(self, count: int, seed: int) -> list[tuple[int, Tensor]]:
        """Which of so many new rows each member makes."""
        weights = self.posterior_.weights.double().cpu()
        if len(weights) == 1:
            return [(0, torch.arange(count))]
        generator = torch.Generator().manual_seed(spread(seed, 1)[0])
        owner = torch.multinomial(weights, count, replacement=True, generator=generator)
        return [(int(member), (owner == member).nonzero().ravel()) for member in owner.unique()]
