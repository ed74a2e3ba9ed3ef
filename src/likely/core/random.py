"""Seeds and generators: what draws, draws from a generator that the fit or the call owns, never from a global one.

    with drawing(generator):    layers and noise, which ask for `current_generator`, draw from it: costs nothing
    with redirected():          inside it, for code that cannot be told, such as a function of the user's
    with isolated(seed):        both at once: for constructors of modules and torch's distributions

What is current belongs to a thread (a context variable), so fits and predictions in several threads do not meet: each
draws what it would draw alone.

`redirected` and `isolated` hand the generator to torch's operations where they would take the global one, at a few
microseconds an operation: training loops over our own layers use `drawing`.
A generator's state (`get_state`, `set_state`) is all that a checkpoint must keep.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from .errors import SpecError

__all__ = ["current_generator", "drawing", "evenly", "isolated", "normal_like", "redirected", "seed_of", "spread"]


def seed_of(random_state: Any) -> int:
    """One integer seed from an int, a numpy `RandomState` or `Generator`, or None (a new one each time).

    >>> seed_of(0) == seed_of(0)
    True
    """
    from sklearn.utils import check_random_state  # loads scipy.stats, which distributions alone do without

    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31 - 1))
    try:
        return int(check_random_state(random_state).randint(2**31 - 1))
    except ValueError as error:
        raise SpecError(
            f"random_state={random_state!r} is not a seed; use an integer from 0 to 2**32 − 1, "
            "a numpy RandomState or Generator, or None."
        ) from error


def spread(seed: int, count: int) -> list[int]:
    """`count` independent seeds from one; the first ones do not depend on how many are asked for."""
    return [int(child.generate_state(1)[0]) for child in np.random.SeedSequence(seed).spawn(count)]


# --- the generator in force -------------------------------------------------------------------------------------------
_current: ContextVar[dict[torch.device, Generator] | None] = ContextVar("generators", default=None)
"""The generators that this thread draws from, by device."""
CPU = torch.device("cpu")


def current_generator(device: torch.device = CPU) -> Generator | None:
    """What random numbers on this device are to be drawn from; None outside `drawing`, which torch reads as its own.

    >>> with drawing(0):
    ...     first = torch.rand(2, generator=current_generator())
    >>> with drawing(torch.Generator().manual_seed(0)):
    ...     torch.equal(first, torch.rand(2, generator=current_generator()))
    True
    """
    generators = _current.get()
    if generators is None:
        return None
    if device not in generators:
        generators[device] = Generator(device).manual_seed(generators[CPU].initial_seed())
    return generators[device]


@contextmanager
def drawing(source: int | Generator) -> Iterator[Generator]:
    """Inside, `current_generator` is this one (or a new one with this seed), in this thread."""
    generator = source if isinstance(source, Generator) else Generator().manual_seed(source)
    token = _current.set({CPU: generator})
    try:
        yield generator
    finally:
        _current.reset(token)


@contextmanager
def isolated(source: int | Generator) -> Iterator[Generator]:
    """Inside, whatever draws in this thread draws from this generator (or from a new one with this seed).

    >>> with isolated(0):
    ...     first = torch.nn.Linear(2, 1).weight
    >>> with isolated(0):
    ...     torch.equal(first, torch.nn.Linear(2, 1).weight)
    True
    """
    with drawing(source) as generator, Redirected():
        yield generator


def redirected() -> AbstractContextManager[Any]:
    """`isolated` for one stretch of foreign code inside `drawing`; outside of it nothing changes.

    >>> with drawing(0), redirected():
    ...     first = torch.rand(2)
    >>> with isolated(0):
    ...     torch.equal(first, torch.rand(2))
    True
    """
    return nullcontext() if _current.get() is None else Redirected()


def normal_like(x: Tensor) -> Tensor:
    """Standard normal numbers of the shape of x, from the current generator.

    >>> normal_like(torch.zeros(2, 3)).shape
    torch.Size([2, 3])
    """
    return torch.empty_like(x).normal_(generator=current_generator(x.device))


def evenly(count: int, like: Tensor) -> Tensor:
    """So many numbers in [0, 1), (count,): evenly spaced, with one random shift. Means over them vary little.

    >>> with drawing(0):
    ...     evenly(4, torch.zeros(1)).sort().values.diff()
    tensor([0.2500, 0.2500, 0.2500])
    """
    shift = torch.rand((), generator=current_generator(like.device), dtype=like.dtype, device=like.device)
    return (torch.arange(count, dtype=like.dtype, device=like.device) / max(1, count) + shift) % 1.0


class Redirected(TorchDispatchMode):
    """Operations that would draw from torch's global generator draw from the current one, in this thread."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if not _draws(func):
            return func(*args, **kwargs)
        tensor = next((value for value in args if isinstance(value, torch.Tensor)), None)
        device = torch.device(kwargs.get("device") or (CPU if tensor is None else tensor.device))
        if device.type == "meta":  # shapes only, for which torch's own way would import the compiler
            return _shape_of(func, args, kwargs)
        generator = current_generator(device)
        named, place = _with_generator(func)
        if place is not None and len(args) > place:
            given = args[place]
            args = (*args[:place], generator if given is None else given, *args[place + 1 :])
        elif kwargs.get("generator") is None:
            kwargs = {**kwargs, "generator": generator}
        return named(*args, **kwargs)

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # its guard would import the compiler, which takes seconds

    @classmethod
    def is_infra_mode(cls) -> bool:
        return True

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        return True


def _shape_of(func: Any, args: Any, kwargs: Any) -> Any:
    name = func.overloadpacket.__name__
    if name.endswith("_"):
        return args[0]
    if name in ("rand", "randn"):
        options = {key: value for key, value in kwargs.items() if key != "generator"}
        return torch.ops.aten.empty.memory_format(args[0], **options)
    return func(*args, **kwargs)


@cache
def _draws(func: Any) -> bool:
    return torch.Tag.nondeterministic_seeded in func.tags and _with_generator(func)[0] is not None


@cache
def _with_generator(func: Any) -> tuple[Any, int | None]:
    """The overload of an operation that takes a generator, and its place where it is a positional argument."""
    wanted = [(own.name, str(own.type)) for own in func._schema.arguments if own.name != "generator"]
    for name in func.overloadpacket.overloads():
        candidate = getattr(func.overloadpacket, name)
        arguments = list(candidate._schema.arguments)
        place = next((i for i, own in enumerate(arguments) if own.name == "generator"), None)
        if place is not None:
            own = arguments.pop(place)
            if [(other.name, str(other.type)) for other in arguments] == wanted:
                return candidate, None if own.kwarg_only else place
    return None, None
