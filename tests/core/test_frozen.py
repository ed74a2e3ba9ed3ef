import copy
import pickle
from collections import namedtuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likely.core.frozen import FrozenDict, freeze

plain = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(plain)
def test_what_is_frozen_hashes_and_stays_frozen(value):
    frozen = freeze(value)
    assert hash(frozen) == hash(freeze(value))
    assert freeze(frozen) == frozen
    assert pickle.loads(pickle.dumps(frozen)) == copy.deepcopy(frozen) == frozen


@given(st.permutations(["a", "b", "c"]), st.permutations(["a", "b", "c"]))
def test_equal_dicts_hash_alike_and_order_counts(first, second):
    left, right = (FrozenDict(dict.fromkeys(keys, 1)) for keys in (first, second))
    assert (left == right) == (first == second)
    assert (left != right) == (first != second)
    assert (hash(left) == hash(right)) or left != right
    assert left == dict(right)


def test_numpy_numbers_become_plain_also_inside():
    assert freeze([np.float32(0.5), {"a": np.int64(3)}, (np.bool_(True),)]) == (0.5, {"a": 3}, (True,))
    assert [type(v) for v in freeze([np.float32(1), np.int8(1), np.str_("x")])] == [float, int, str]


def test_named_tuples_stay_named():
    point = namedtuple("Point", "x y")(1, 2)
    assert freeze(point) is point


def test_arrays_stay_what_they_are():
    rows = np.ones((3, 2))
    assert freeze((rows, rows))[0] is rows
    assert freeze(np.array(2.0)) == 2.0


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.__setitem__("a", 2),
        lambda d: d.__delitem__("a"),
        lambda d: d.pop("a"),
        lambda d: d.popitem(),
        lambda d: d.clear(),
        lambda d: d.update(a=2),
        lambda d: d.setdefault("b", 2),
        lambda d: d.__ior__({"a": 2}),
    ],
)
def test_a_frozen_dict_cannot_change(change):
    held = FrozenDict(a=1)
    with pytest.raises(TypeError, match=r"cannot be changed; use \.replace"):
        change(held)
    assert held == {"a": 1}
    assert held != {"a": 2}
    assert pickle.loads(pickle.dumps(held)) == copy.deepcopy(held) == held
