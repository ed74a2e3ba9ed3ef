"""A spec is a frozen value that says what a person chose: `MLP(hidden=(64, 64))`, `Poisson()`, `Adam(lr=0.01)`.

Specs compare, hash, print as the call that makes them, go to JSON and back, and can be read from text.
Subclassing is all it takes to define and register one:

>>> class Colour(Spec, axis="colour"):
...     pass
>>> class Grey(Colour):
...     level: float = 0.5
>>> Grey(level=0.2)
Grey(level=0.2)
>>> Grey() == Colour.parse("grey(level=0.5)") == Spec.from_json(Grey().to_json())
True
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping
from typing import Any, ClassVar, Self, TypeVar, dataclass_transform

from .errors import SpecError
from .frozen import FrozenDict, freeze
from .kinds import check_kinds

__all__ = [
    "FrozenDict",
    "Spec",
    "as_spec",
    "axes",
    "is_among",
    "is_fraction",
    "is_integer",
    "registered",
    "require",
    "transient",
]

S = TypeVar("S", bound="Spec")

_AXES: dict[str, type[Spec]] = {}
_REGISTRY: dict[str, dict[str, type[Spec]]] = {}


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
class Spec:
    """Base of all specs. `class Likelihood(Spec, axis="likelihood")` opens an axis; its public subclasses register.

    A class whose name starts with an underscore is a base for others and is not registered.
    """

    axis: ClassVar[str] = ""

    def __init_subclass__(cls, axis: str | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        dataclasses.dataclass(frozen=True, repr=False)(cls)
        if axis is not None:
            cls.axis = axis
            _AXES[axis] = cls
            _REGISTRY.setdefault(axis, {})
        elif not cls.__name__.startswith("_"):
            known = _REGISTRY[cls.axis]
            refuse_namesake(cls, known.get(cls.__name__), cls.axis)
            known[cls.__name__] = cls

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            frozen = freeze(value)
            if frozen is not value:
                object.__setattr__(self, field.name, frozen)
        try:
            self.validate()
        except SpecError:
            raise
        except (TypeError, ValueError, ArithmeticError) as error:  # a comparison that its values do not allow
            check_kinds(self, _short)
            raise SpecError(f"{type(self).__name__}: {error}.") from error
        check_kinds(self, _short)

    def validate(self) -> None:
        """Check the values; raise `SpecError` through `require`. Called on construction."""

    @classmethod
    def example(cls) -> Self:
        """A small instance that is quick to use: what the test matrix builds. Override where defaults are heavy."""
        return cls()

    # --- as a value ---------------------------------------------------------------------------------------------
    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in _chosen(self))})"

    def replace(self, **changes: Any) -> Self:
        """A copy with some values changed; `optimizer__lr=0.1` reaches into a spec inside."""
        own = {name: value for name, value in changes.items() if "__" not in name}
        inner: dict[str, dict[str, Any]] = {}
        for name, value in changes.items():
            if "__" in name:
                outer, _, rest = name.partition("__")
                inner.setdefault(outer, {})[rest] = value
        known = self.get_params(deep=False)
        for name in [*own, *inner]:
            if name not in known:
                raise SpecError(f"{type(self).__name__} has no argument {name!r}; it has {', '.join(known) or 'none'}.")
        changed = dataclasses.replace(self, **own)  # type: ignore[type-var]
        for name, sub in inner.items():
            target = getattr(changed, name)
            if not isinstance(target, Spec):
                raise SpecError(
                    f"{type(self).__name__}({name}={_short(target)}) is not a spec, so {name}__{next(iter(sub))} is "
                    f"not a parameter; set {name} to a spec first."
                )
            changed = dataclasses.replace(changed, **{name: target.replace(**sub)})  # type: ignore[type-var]
        return changed

    def __call__(self, **changes: Any) -> Self:
        """`spec(lr=0.1)` is `spec.replace(lr=0.1)`; scikit-learn takes what is callable as an argument's default."""
        return self.replace(**changes)

    # --- scikit-learn's view -----------------------------------------------------------------------------------
    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments by name; with `deep`, also those of specs inside, as `outer__inner`."""
        params: dict[str, Any] = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.init}  # type: ignore[arg-type]
        if deep:
            for name, value in list(params.items()):
                if isinstance(value, Spec):
                    params |= {f"{name}__{k}": v for k, v in value.get_params().items()}
        return params

    def __sklearn_clone__(self) -> Self:
        return self

    # --- JSON ---------------------------------------------------------------------------------------------------
    def to_json(self) -> dict[str, Any]:
        """Plain data: `{"spec": "network.MLP", "hidden": [64, 64], …}`.

        Fields made by `transient()` are left out: they hold code or data, which belong to a fit and not to a file.
        """
        out: dict[str, Any] = {"spec": f"{self.axis}.{type(self).__name__}"}
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            name, value = field.name, getattr(self, field.name)
            if field.metadata.get("transient"):
                continue
            try:
                out[name] = _plain(value)
            except SpecError as error:
                raise SpecError(f"{type(self).__name__}({name}=…) {error}") from None
        return out

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Spec:
        """The spec that `to_json` wrote. Only registered names are known; nothing is executed."""
        if not isinstance(data, Mapping) or not isinstance(data.get("spec"), str):
            raise SpecError(f'A spec in JSON looks like {{"spec": "network.MLP", …}}; found {_short(data)}.')
        axis, _, name = data["spec"].partition(".")
        if axis not in _AXES:
            raise SpecError(f"Unknown axis {axis!r} in spec {data['spec']!r}; known: {', '.join(sorted(_AXES))}.")
        arguments = {k: _unplain(v) for k, v in data.items() if k != "spec"}
        return _call(_lookup(_AXES[axis], name), (), arguments)

    # --- text ---------------------------------------------------------------------------------------------------
    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a spec of this axis from text such as `mlp(hidden=[64, 64], activation="gelu")`."""
        from .parse import parse_spec

        return parse_spec(text, cls)


def transient(default: Any = None) -> Any:
    """A field that is not written to files: callbacks, validation data, paths."""
    return dataclasses.field(default=default, metadata={"transient": True}, compare=False, hash=False)


def axes() -> dict[str, type[Spec]]:
    """Every axis by name."""
    return dict(_AXES)


def registered(axis: type[S] | str) -> dict[str, type[S]]:
    """Every spec of an axis, by class name, in order of the alphabet; an axis that nothing extends is its own spec."""
    name = axis if isinstance(axis, str) else axis.axis
    if name not in _REGISTRY:
        raise SpecError(f"Unknown axis {name!r}; known: {', '.join(sorted(_AXES))}.")
    classes = _REGISTRY[name] or {_AXES[name].__name__: _AXES[name]}
    return dict(sorted(classes.items()))  # type: ignore[arg-type]


def refuse_namesake(new: type, known: type | None, axis: str) -> None:
    """Files and text know classes by name, so the name of one of Likely's own cannot be taken by another."""
    ours = known is not None and known.__module__.startswith("likely.")
    if ours and not new.__module__.startswith("likely."):
        raise SpecError(f"Likely has a {axis} named {new.__name__}; give your class another name.")


def as_spec(value: Any, axis: type[S], argument: str) -> S:
    """Take a spec, or text or JSON that describes one; name the argument if it is neither."""
    if isinstance(value, axis):
        return value
    if isinstance(value, str):
        return axis.parse(value)
    if isinstance(value, Mapping) and "spec" in value:
        return as_spec(Spec.from_json(value), axis, argument)
    if isinstance(value, type) and issubclass(value, axis):
        raise SpecError(f"{argument}={value.__name__} is a class; write {argument}={value.__name__}().")
    names = ", ".join(registered(axis))
    given = f"the {value.axis} {_short(value)}" if isinstance(value, Spec) else _short(value)
    raise SpecError(f"{argument} must be one of the {axis.axis} specs ({names}); found {given}.")


def require(condition: bool, spec: Any, name: str, needs: str) -> None:
    """Raise a `SpecError` that names the owner, the argument, what it needs and what it got, unless `condition`."""
    if not condition:
        owner = type(spec).__name__
        raise SpecError(f"{owner}({name}={_short(getattr(spec, name))}): {name} must be {needs}.")


def is_integer(value: object, least: int = 1) -> bool:
    """Whether this is an integer of `least` or more; True and False are not.

    >>> is_integer(3), is_integer(0), is_integer(2.0), is_integer(True)
    (True, False, False, False)
    """
    return type(value) is int and value >= least


def is_fraction(value: object) -> bool:
    """Whether this is a fraction in [0, 1).

    >>> is_fraction(0.5), is_fraction(1)
    (True, False)
    """
    return isinstance(value, int | float) and 0 <= value < 1


def is_among(value: object, known: Collection[str]) -> bool:
    """Whether this is one of the known names.

    >>> is_among("relu", ("relu", "tanh")), is_among(["relu"], ("relu", "tanh"))
    (True, False)
    """
    return isinstance(value, str) and value in known


def _chosen(spec: Spec) -> Iterator[tuple[str, Any]]:
    """The arguments that differ from their defaults."""
    for field in dataclasses.fields(spec):  # type: ignore[arg-type]
        value, default = getattr(spec, field.name), _default(field)
        if default is dataclasses.MISSING or type(value) is not type(default) or value != default:
            yield field.name, value


def _default(field: dataclasses.Field[Any]) -> Any:
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


def _lookup(axis: type[S], name: str) -> type[S]:
    known = registered(axis)
    folded = {fold(k): k for k in known}
    if name in known:
        return known[name]
    if fold(name) in folded:
        return known[folded[fold(name)]]
    from difflib import get_close_matches

    close = get_close_matches(fold(name), folded, n=1)
    hint = f" Did you mean {folded[close[0]]}?" if close else ""
    raise SpecError(f"Unknown {axis.axis} {name!r}.{hint} Known: {', '.join(known)}.")


def fold(name: str) -> str:
    """`student_t`, `StudentT` and `studentt` are one name."""
    return name.replace("_", "").lower()


def _call(cls: type[S], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> S:
    names = [f.name for f in dataclasses.fields(cls) if f.init]  # type: ignore[arg-type]
    if len(args) > len(names):
        raise SpecError(f"{cls.__name__} takes at most {len(names)} arguments ({', '.join(names)}); got {len(args)}.")
    given = dict(zip(names, args, strict=False))
    for name, value in kwargs.items():
        if name not in names:
            raise SpecError(f"{cls.__name__} has no argument {name!r}; it has {', '.join(names) or 'none'}.")
        if name in given:
            raise SpecError(f"{cls.__name__} got {name!r} twice.")
        given[name] = value
    needed = [f.name for f in dataclasses.fields(cls) if f.init and _default(f) is dataclasses.MISSING]  # type: ignore[arg-type]
    missing = [name for name in needed if name not in given]
    if missing:
        raise SpecError(f"{cls.__name__} needs a value for {' and '.join(missing)}.")
    return cls(**given)


def _plain(value: Any) -> Any:
    value = freeze(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if hasattr(value, "to_json"):
        return value.to_json()
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    if isinstance(value, Mapping):
        if not all(isinstance(k, str) for k in value) or isinstance(value.get("spec"), str):
            raise SpecError(
                f"holds {_short(value)}, whose keys cannot be written to a file; use words other than 'spec'."
            )
        return {k: _plain(v) for k, v in value.items()}
    raise SpecError(f"holds a {type(value).__name__}, which cannot be written to a file.")


def _unplain(value: Any) -> Any:
    if isinstance(value, Mapping):
        written = isinstance(value.get("spec"), str)
        return Spec.from_json(value) if written else {k: _unplain(v) for k, v in value.items()}
    if isinstance(value, list):
        return tuple(_unplain(v) for v in value)
    return value


def _short(value: Any, limit: int = 60) -> str:
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"
