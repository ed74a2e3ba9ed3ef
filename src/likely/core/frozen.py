"""Values that cannot change: what a spec holds, so that it can be compared and hashed."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["FrozenDict", "freeze"]


class FrozenDict(dict[str, Any]):
    """A dict that cannot change. Two are equal if their pairs are equal and in the same order.

    >>> FrozenDict(a=1, b=2) == FrozenDict(b=2, a=1)
    False
    """

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self.items()))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, FrozenDict):  # order has a meaning: the first pattern wins, columns follow each other
            return list(self.items()) == list(other.items())
        return super().__eq__(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError("a spec's values cannot be changed; use .replace(...)")

    __setitem__ = __delitem__ = __ior__ = _refuse  # type: ignore[assignment]
    pop = popitem = clear = update = setdefault = _refuse  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenDict, (dict(self),)


def freeze(value: Any) -> Any:
    """Lists become tuples, dicts cannot change, numpy's numbers become Python's; all else stays what it is.

    >>> freeze([1, [2, {"a": [3]}]])
    (1, (2, {'a': (3,)}))
    """
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        frozen = tuple(freeze(v) for v in value)
        same = isinstance(value, tuple) and all(a is b for a, b in zip(frozen, value, strict=True))
        return value if same else frozen
    if isinstance(value, dict) and not isinstance(value, FrozenDict):
        return FrozenDict({freeze(k): freeze(v) for k, v in value.items()})
    if type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0:
        return value.item()
    return value
