from __future__ import annotations

import pytest

from likely.core.errors import SpecError
from likely.core.spec import Spec
from likely.models.language import NGram


def test_it_is_a_value():
    assert Spec.from_json(NGram(3).to_json()) == NGram.parse("ngram(order=3)") == NGram(3)


@pytest.mark.parametrize("order", [0, -1, 2.5, 51])
def test_an_order_that_will_not_do_is_named(order):
    with pytest.raises(SpecError, match="order must be an integer from 1 to 50"):
        NGram(order)
