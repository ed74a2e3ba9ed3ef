"""Product: several targets of different kinds, independent given x.

    log p(y | x) = Σₚ log p(yₚ | ηₚ)

η holds the numbers of all parts that depend on x, part by part, and then those that do not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from ..core.errors import DataError
from ..core.spec import require
from ..probability.joint import Joint, JointSupport, fill
from .base import Likelihood, Target
from .weighted import clean

__all__ = ["Product"]


class Product(Likelihood):
    """Product({"height": Normal(), "visits": Poisson()}): y is (n, columns), its columns in the order of the parts.

    A `Regressor` matches the columns of a frame, or a dict of columns, with the parts by their names.

    A part takes one column, a MultivariateNormal takes d. A NaN says that its part is missing in this row: the part
    does not count there, the others do. At most one part may leave its number of classes (or its d) to the data; others
    say it, as in `Categorical(classes=3)`.

    >>> import torch
    >>> from likely.likelihoods import Normal, Poisson
    >>> both = Product({"height": Normal(scale=1.0), "visits": Poisson()})
    >>> both.distribution(torch.zeros(2)).marginals["visits"].mean
    tensor(1.)
    """

    parts: Mapping[str, Likelihood]

    event_dim = 1

    @classmethod
    def example(cls) -> Product:
        """A number, a count and a label."""
        from .bernoulli import Bernoulli
        from .normal import Normal
        from .poisson import Poisson

        return cls({"height": Normal(), "visits": Poisson(), "member": Bernoulli()})

    def validate(self) -> None:
        parts = self.parts
        named = isinstance(parts, Mapping) and len(parts) > 0 and all(isinstance(p, Likelihood) for p in parts.values())
        require(named, self, "parts", 'a dict from names to likelihoods, such as {"a": Normal(), "b": Poisson()}')
        # A dict with the key "spec" is how JSON writes a spec.
        words = all(isinstance(name, str) and name not in ("", "spec") for name in parts)
        require(words, self, "parts", 'named by words other than "spec"')
        unknown = [name for name, part in parts.items() if part.known_target() is None]
        hint = f"clear about their size, except one ({', '.join(unknown)} are not): say classes= or dim="
        require(len(unknown) <= 1, self, "parts", hint)

    @property
    def needs(self) -> str:  # type: ignore[override]
        """The columns in words."""
        return "a column for each part: " + ", ".join(f"{name} ({part.needs})" for name, part in self.parts.items())

    @property
    def support(self) -> Any:
        return JointSupport([part.support for part in self.parts.values()], self._widths())

    # --- the target ---------------------------------------------------------------------------------------------
    def target(self, y: Tensor) -> Target:
        return _together(tuple(part.target(own) for part, own in self._columns(y)))

    def known_target(self) -> Target | None:
        parts = [part.known_target() for part in self.parts.values()]
        known = tuple(part for part in parts if part is not None)
        return _together(known) if len(known) == len(parts) else None

    def bind(self, target: Target) -> Product:
        """Each part bound to its own target."""
        pairs = zip(self.parts.items(), target.parts, strict=True)
        return self.replace(parts={name: part.bind(own) for (name, part), own in pairs})

    def example_target(self) -> Target:
        return _together(tuple(part.example_target() for part in self.parts.values()))

    def size(self, target: Target) -> int:
        return sum(part.size(own) for part, own in zip(self.parts.values(), target.parts, strict=True))

    def shared(self, target: Target) -> int:
        return sum(part.shared(own) for part, own in zip(self.parts.values(), target.parts, strict=True))

    def constants(self, shared: Tensor, target: Target) -> dict[str, Tensor]:
        counts = [part.shared(own) for part, own in zip(self.parts.values(), target.parts, strict=True)]
        parts = zip(self.parts.items(), target.parts, shared.split(counts, -1), strict=True)
        return {
            f"{name}: {constant}": value
            for (name, part), own, values in parts
            for constant, value in part.constants(values, own).items()
        }

    def offsets(self, target: Target) -> int:
        return 0  # a number per row does not say which part it is of

    def target_of(self, size: int) -> Target:
        known = [part.known_target() for part in self.parts.values()]
        pairs = list(zip(self.parts.values(), known, strict=True))
        rest = size - sum(part.size(own) for part, own in pairs if own is not None)
        return _together(tuple(part.target_of(rest) if own is None else own for part, own in pairs))

    # --- the distribution ---------------------------------------------------------------------------------------
    def distribution(self, eta: Tensor) -> Joint:
        target = self.target_of(eta.shape[-1])
        parts = zip(self.parts.items(), self._split(eta), strict=True)
        marginals = {name: part.distribution(own) for (name, part), own in parts}
        return Joint(marginals, self._placeholders(eta, [_width(own) for own in target.parts]))

    def log_prob(self, eta: Tensor, y: Tensor) -> Tensor:
        total = eta.new_zeros(())
        for (part, own), own_eta in zip(self._columns(y), self._split(eta), strict=True):
            gone = part.missing(own)
            filled = torch.where(gone.unsqueeze(-1) if part.event_dim else gone, part.placeholder(own), own)
            total = total + torch.where(gone, 0.0, part.log_prob(own_eta, filled))
        return total

    def value_and_grad(self, eta: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Part by part; missing parts contribute nothing."""
        total, numbers, constants = eta.new_zeros(()), [], []
        own_sizes = _layout(self, eta.shape[-1])[: len(self.parts)]
        for (part, own), own_eta, size in zip(self._columns(y), self._split(eta), own_sizes, strict=True):
            gone = part.missing(own)
            filled = torch.where(gone.unsqueeze(-1) if part.event_dim else gone, part.placeholder(own), own)
            value, score = part.value_and_grad(own_eta, filled)
            total = total + torch.where(gone, 0.0, value)
            score = torch.where(gone.unsqueeze(-1), 0.0, score)
            numbers.append(score[..., :size])
            constants.append(score[..., size:])
        return total, torch.cat(numbers + constants, -1)

    # --- estimates ----------------------------------------------------------------------------------------------
    def estimate(self, y: Tensor, fraction: Tensor) -> Tensor:
        """Part by part, each from the rows where it is not missing."""
        return self._merge(y, [part.weighted_mle(own, fraction) for part, own in self._columns(y)])

    def start(self, y: Tensor, fraction: Tensor) -> tuple[Tensor, Tensor]:
        """Part by part."""
        guesses = [part.start(*clean(part, own, fraction)) for part, own in self._columns(y)]
        return self._merge(y, [guess for guess, _ in guesses]), self._merge(y, [unit for _, unit in guesses])

    # --- data at the door ---------------------------------------------------------------------------------------
    def missing(self, y: Tensor) -> Tensor:
        """Which rows have all their parts missing; where only some are, `log_prob` leaves those out."""
        return torch.stack([part.missing(own) for part, own in self._columns(y)]).all(0)

    def placeholder(self, y: Tensor) -> Tensor:
        return self._placeholders(y, fill(self._widths(), y.shape[-1]))

    def check(self, y: Tensor, name: str = "y") -> None:
        """The number of columns, then each column by its part."""
        widths = self._widths()
        least = sum(width or 1 for width in widths)
        columns = y.shape[-1] if y.ndim > 1 else 0
        if columns < least or (columns > least and None not in widths):
            raise DataError(f"{name} has shape {tuple(y.shape)}; Product needs {least} columns: {self.needs}.")
        for key, (part, own) in zip(self.parts, self._columns(y), strict=True):
            part.check(own, f"column {key!r} of {name}")

    # --- which number belongs to which part ---------------------------------------------------------------------
    def _widths(self) -> list[int | None]:
        """How many columns each part takes; None for all that the others leave."""
        targets = [(part, part.known_target()) for part in self.parts.values()]
        return [_width(own or Target()) if own or not part.event_dim else None for part, own in targets]

    def _columns(self, y: Tensor) -> list[tuple[Likelihood, Tensor]]:
        """Each part with its columns of y."""
        pieces = y.split(fill(self._widths(), y.shape[-1]), -1)
        pairs = zip(self.parts.values(), pieces, strict=True)
        return [(part, piece if part.event_dim else piece.squeeze(-1)) for part, piece in pairs]

    def _split(self, eta: Tensor) -> list[Tensor]:
        """The η of each part: its own numbers, and its part of the learned constants at the end."""
        pieces = eta.split(list(_layout(self, eta.shape[-1])), -1)
        return [torch.cat(pair, -1) for pair in zip(pieces[: len(self.parts)], pieces[len(self.parts) :], strict=True)]

    def _merge(self, y: Tensor, etas: list[Tensor]) -> Tensor:
        """The inverse of `_split`."""
        shared = [part.shared(part.target(own)) for part, own in self._columns(y)]
        cuts = [eta.split([eta.shape[-1] - last, last], -1) for eta, last in zip(etas, shared, strict=True)]
        return torch.cat([own for own, _ in cuts] + [last for _, last in cuts], -1)

    def _placeholders(self, like: Tensor, widths: list[int]) -> Tensor:
        empty = [like.new_empty(width) for width in widths]
        values = [part.placeholder(own).expand(len(own)) for part, own in zip(self.parts.values(), empty, strict=True)]
        return torch.cat(values)


@lru_cache(maxsize=256)
def _layout(product: Product, size: int) -> tuple[int, ...]:
    """The lengths of the pieces of η: the parts' own numbers, then the parts' learned constants."""
    pairs = list(zip(product.parts.values(), product.target_of(size).parts, strict=True))
    shared = [part.shared(own) for part, own in pairs]
    return tuple(part.size(own) - last for (part, own), last in zip(pairs, shared, strict=True)) + tuple(shared)


def _together(parts: tuple[Target, ...]) -> Target:
    return Target(shape=(sum(map(_width, parts)),), parts=parts)


def _width(target: Target) -> int:
    """How many columns a target takes."""
    return math.prod(target.shape)
