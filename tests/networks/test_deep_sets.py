"""Deep sets: the order of elements does not matter, nor what pads a set, nor which sets share a batch."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from likely import Classifier, Regressor
from likely.core.errors import SpecError
from likely.core.spec import Spec
from likely.data.graph import Graph, Graphs
from likely.data.rows import Ragged
from likely.inference import MAP
from likely.networks import DeepSets, Network
from likely.networks.layers.sets import EquivariantLinear

POOLS = ("sum", "mean", "max")


def sets(sizes=(3, 1, 5)):
    return [torch.randn(size, 2, dtype=torch.float64) for size in sizes]


def built(pool, output):
    return DeepSets((6, 5), pool=pool, output=output).build((5, 2), 3).double().eval()


@pytest.mark.parametrize("pool", POOLS)
def test_answers_for_sets_do_not_depend_on_the_order(pool):
    net, x = built(pool, "set"), torch.randn(4, 5, 2, dtype=torch.float64)
    order = torch.randperm(5)
    torch.testing.assert_close(net(x[:, order]), net(x), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("pool", POOLS)
def test_answers_for_elements_follow_the_order(pool):
    net, x = built(pool, "each"), torch.randn(4, 5, 2, dtype=torch.float64)
    order = torch.randperm(5)
    torch.testing.assert_close(net(x[:, order]), net(x)[:, order], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("output", ["set", "each"])
@pytest.mark.parametrize("pool", POOLS)
def test_sets_of_different_sizes_are_answered_as_each_by_itself(pool, output):
    net, given = built(pool, output), sets()
    apart = torch.cat([net(elements.unsqueeze(0)).reshape(-1, 3) for elements in given])
    torch.testing.assert_close(net(Ragged.of(given)), apart, rtol=1e-6, atol=1e-6)
    assert len(apart) == (3 if output == "set" else 9)


@pytest.mark.parametrize("pool", POOLS)
def test_the_invariant_form_is_its_formula(pool):
    """ρ(pool φ(xₘ))."""
    net, x = built(pool, "set"), sets((4,))[0]
    inner = net.element(x)
    whole = {"sum": inner.sum(0), "mean": inner.mean(0), "max": inner.amax(0)}[pool]
    torch.testing.assert_close(net(x.unsqueeze(0))[0], net.whole(whole))


@pytest.mark.parametrize("pool", POOLS)
def test_the_equivariant_layer_is_its_formula(pool):
    """xₘ W + pool(x) V + b."""
    layer, x = EquivariantLinear(2, 3, pool).double(), sets((4,))[0]
    whole = {"sum": x.sum(0), "mean": x.mean(0), "max": x.amax(0)}[pool]
    wanted = x @ layer.own.weight.T + whole @ layer.others.weight.T + layer.own.bias
    torch.testing.assert_close(layer(x.unsqueeze(0))[0], wanted)


def test_sums_count_and_means_do_not():
    x = torch.randn(1, 4, 2, dtype=torch.float64)
    twice = torch.cat([x, x], 1)
    for pool in ("mean", "max"):
        net = built(pool, "set")
        torch.testing.assert_close(net(twice), net(x))
    net = built("sum", "set")
    assert not torch.allclose(net(twice), net(x))


def test_plain_numbers_are_elements():
    net = DeepSets((4,)).build((3,), 1).eval()
    x = torch.randn(5, 3)
    torch.testing.assert_close(net(x), net(x.unsqueeze(-1)))
    torch.testing.assert_close(net(x), net(Ragged.of(list(x))))


def test_without_hidden_layers_it_is_linear_in_the_sum():
    net = DeepSets((), after=()).build((4, 2), 1)
    x = torch.randn(3, 4, 2)
    torch.testing.assert_close(net(x), net.whole(x.sum(1)))


def test_outputs_start_at_order_one_whatever_the_size_of_the_sets():
    for size in (2, 2000):
        net = DeepSets().build((size, 3), 16)
        assert 1e-3 < net(torch.randn(64, size, 3)).std() < 2


def test_it_learns_the_size_and_the_largest_element():
    """A start in 15 or fewer stays below 0.9, and five in a row do for 1 of 10⁶ seeds."""
    rng = np.random.default_rng(0)
    given = [rng.normal(size=(size, 1)) for size in rng.integers(1, 8, 100)]
    inference = MAP("adam(0.01)", epochs=120, batch_size=32)
    for pool, of_set in (("sum", len), ("max", np.max)):
        network, y = DeepSets((16, 16), pool=pool, after=()), np.array([of_set(elements) for elements in given], float)
        starts = (Regressor(network=network, inference=inference, random_state=i) for i in range(5))
        assert any(model.fit(given, y).score(given, y) > 0.9 for model in starts)


def test_each_element_is_compared_with_the_others():
    """Whether an element is above the mean of its set needs both."""
    rng = np.random.default_rng(0)
    given = [rng.normal(size=(size, 1)) + rng.normal(scale=3.0) for size in rng.integers(2, 6, 80)]
    y = [(elements > elements.mean()).astype(int).ravel() for elements in given]
    network = DeepSets((16,), pool="mean", output="each")
    model = Classifier(network=network, inference=MAP("adam(0.02)", epochs=60, batch_size=20), random_state=0)
    predicted = model.fit(given, y).predict(given)
    assert np.concatenate(predicted).shape == np.concatenate(y).shape
    assert (np.concatenate(predicted) == np.concatenate(y)).mean() > 0.9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"hidden": 64}, "hidden must be a tuple of positive integers"),
        ({"after": (0,)}, "after must be a tuple of positive integers"),
        ({"pool": "median"}, "pool must be one of sum, mean, max"),
        ({"output": "last"}, "output must be set or each"),
        ({"activation": "rleu"}, "activation must be one of identity"),
        ({"dropout": 1}, "dropout must be a probability"),
    ],
)
def test_a_wrong_argument_is_named(arguments, message):
    with pytest.raises(SpecError, match=message):
        DeepSets(**arguments)


def test_what_is_no_set_is_refused():
    with pytest.raises(SpecError, match=r"DeepSets takes sets: rows of shape \(elements, features\)"):
        DeepSets().build((3, 4, 5), 1)
    with pytest.raises(SpecError, match="cannot take graphs as rows: it takes sequences, and these are graphs"):
        Classifier(network=DeepSets()).fit([Graph([[1.0]], []), Graph([[2.0]], [])], [0, 1])
    with pytest.raises(TypeError, match="these are graphs"):
        DeepSets().build((3, 1), 1)(Graphs.of([Graph([[1.0]], [])]))


def test_absurd_sizes_are_refused():
    with pytest.raises(SpecError, match=r"would have [\d,]+ weights"):
        DeepSets((10**6, 10**6)).build((3, 2), 1)
    with pytest.raises(SpecError, match=r"DeepSets.* would have [\d,]+ weights"):
        DeepSets((10**6, 10**6), output="each").build((3, 2), 1)


def test_text_and_json_round_trip():
    spec = DeepSets((8, 4), pool="max", output="each", activation="gelu", dropout=0.1)
    assert Network.parse(repr(spec)) == spec
    assert Spec.from_json(spec.to_json()) == spec
