from __future__ import annotations

import pytest

from likely.core.errors import SpecError
from likely.core.spec import Spec
from likely.models.language import Blend, NGram
from likely.networks import GRU


def test_it_is_a_value():
    assert Spec.from_json(Blend(NGram(3), GRU(4)).to_json()) == Blend(NGram(3), GRU(4)) == Blend("ngram(3)", "gru(4)")
    assert Blend.parse("blend(ngram(3), gru(4), held_out=0.1)") == Blend(NGram(3), GRU(4), 0.1)


@pytest.mark.parametrize(("change", "message"), [({"held_out": 0.0}, "held_out"), ({"counts": GRU(4)}, "NGram")])
def test_what_will_not_do_is_named(change, message):
    with pytest.raises(SpecError, match=message):
        Blend(**change)
