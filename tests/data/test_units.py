import polars as pl
import pytest

from likely.data.units import mixed_units, unit_kind


@pytest.mark.parametrize(
    ("texts", "pair"),
    [
        (["$5", "6 USD", "7"], None),
        (["€ 5", None, "6 EUR"], None),
        (["5%", "0.0", "7 %"], None),
        (["5%", "7"], ("5%", "7")),
        (["7", "$5", "£6"], ("$5", "£6")),
        (["$5", "6%"], ("$5", "6%")),
    ],
)
def test_units_that_do_not_go_together_are_named(texts, pair):
    assert mixed_units(pl.Series(texts)) == pair


def test_the_kind_of_the_unit():
    assert [unit_kind(pl.Series([text, "1"])) for text in ("CHF 5", "5 %", "5")] == ["currency", "percent", ""]
