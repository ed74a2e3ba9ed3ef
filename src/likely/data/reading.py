"""How the text of a table is read: what a person says of it, kept beside a model for later tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
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
    decimals: Mapping[str, str] = field(default_factory=dict)
    """What parts decimals in columns that differ from the others in this."""

    def given(self) -> dict[str, Any]:
        """What is not left to be found out, as files hold it."""
        own = {name: getattr(self, name) for name in ("separator", "decimal", "thousands", "encoding")}
        told = {name: value for name, value in own.items() if value is not None}
        more = {"missing": list(self.missing), "decimals": dict(self.decimals)}
        return told | {name: value for name, value in more.items() if value}

    @staticmethod
    def of(told: Mapping[str, Any]) -> Reading:
        """The inverse of `given`."""
        words = {name: value for name, value in told.items() if name not in ("missing", "decimals")}
        missing, decimals = told.get("missing", []), told.get("decimals", {})
        texts = [*words.values(), *(missing if isinstance(missing, list) else [None])]
        known = set(words) <= set(Reading.__dataclass_fields__) and all(isinstance(text, str) for text in texts)
        if not known or not isinstance(decimals, Mapping) or not set(decimals.values()) <= {".", ","}:
            raise ModelFileError(f"The file has a reading of tables that is not one: {dict(told)!r}.")
        return Reading(**words, missing=tuple(missing), decimals=decimals)

    def over(self, other: Reading) -> Reading:
        """This reading, and what it does not say from another one; a mark of decimals is said of all columns.

        >>> Reading(decimal=",").over(Reading(";", "."))
        Reading(separator=';', decimal=',', thousands=None, encoding=None, missing=(), decimals={})
        """
        return Reading.of(other.given() | ({"decimals": {}} if self.decimal else {}) | self.given())
