"""The units that written numbers carry: a currency, a percent sign, or none.

    $ 5, 5 USD → $        12 % → %        7 → none

Numbers of two currencies in one column, or percents beside plain numbers (1.5% and 0.02), are not one quantity.
"""

from __future__ import annotations

import polars as pl

__all__ = ["CURRENCY", "mixed_units", "unit_kind"]

CURRENCY = r"(?:[$€£¥₹₽₩₺]|USD|EUR|GBP|CHF|JPY|CNY|INR|SEK|NOK|DKK|kr\.?|Rs\.?)"
SAME = {"USD": "$", "EUR": "€", "GBP": "£", "JPY": "¥", "INR": "₹", "Rs": "₹", "Rs.": "₹", "kr.": "kr"}
"""Other words for a sign."""


def mixed_units(series: pl.Series) -> tuple[str, str] | None:
    """Two values whose units do not go together; None where all go. A zero is one in every unit.

    >>> mixed_units(pl.Series(["1.5%", "0.02"]))
    ('1.5%', '0.02')
    >>> mixed_units(pl.Series(["$5", "6 USD", "7"])) is None
    True
    """
    first: dict[str, str] = {}
    for text, unit in zip(series.to_list(), _units(series).to_list(), strict=True):
        if text is not None and (unit or not _is_zero(text)):
            first.setdefault(unit, text)
    apart = list(first) if "%" in first else [unit for unit in first if unit]  # a sum may leave its sign out
    return (first[apart[0]], first[apart[1]]) if len(apart) > 1 else None


def unit_kind(series: pl.Series) -> str:
    """What kind of unit the numbers of a column carry: "currency", "percent" or "".

    >>> unit_kind(pl.Series(["€ 5", "6"])), unit_kind(pl.Series(["5 %"])), unit_kind(pl.Series(["5"]))
    ('currency', 'percent', '')
    """
    units = {unit for unit in _units(series).to_list() if unit}
    return "" if not units else "percent" if "%" in units else "currency"


def _units(series: pl.Series) -> pl.Series:
    signs = series.str.extract(f"({CURRENCY}|%)", 1)
    return signs.replace(SAME).fill_null("")


def _is_zero(text: str) -> bool:
    digits = [letter for letter in text if letter.isdigit()]
    return bool(digits) and set(digits) == {"0"}
