"""How the text of a table is read: what a person says of it, kept beside a model for later tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..core.errors import ModelFileError

__all__ = ["Reading"]


@dataclass(frozen=True)
class Reading:
    """How the text of a table is read: what is None is found out.

    >>> Reading(decimal=",").given()
    {'decimal': ','}
    """

    separator: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    encoding: str | None = None
    missing: tuple[str, ...] = ()

    def given(self) -> dict[str, Any]:
        """What is not left to be found out, as files hold it."""
        own = {name: getattr(self, name) for name in ("separator", "decimal", "thousands", "encoding")}
        told = {name: value for name, value in own.items() if value is not None}
        return {**told, **({"missing": list(self.missing)} if self.missing else {})}

    @staticmethod
    def of(told: Mapping[str, Any]) -> Reading:
        """The inverse of `given`."""
        words = {name: value for name, value in told.items() if name != "missing"}
        missing = told.get("missing", [])
        texts = [*words.values(), *(missing if isinstance(missing, list) else [None])]
        if not set(words) <= set(Reading.__dataclass_fields__) or not all(isinstance(text, str) for text in texts):
            raise ModelFileError(f"The file has a reading of tables that is not one: {dict(told)!r}.")
        return Reading(**words, missing=tuple(missing))

    def over(self, other: Reading) -> Reading:
        """This reading, and what it does not say from another one.

        >>> Reading(decimal=",").over(Reading(";", "."))
        Reading(separator=';', decimal=',', thousands=None, encoding=None, missing=())
        """
        return Reading.of(other.given() | self.given())
