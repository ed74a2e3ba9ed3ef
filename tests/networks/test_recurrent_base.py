"""RNN, GRU and LSTM as networks: shapes, lengths, tokens, what is read out, arguments."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from likely import Classifier, Regressor
from likely.core.errors import DataError, SpecError
from likely.core.spec import Spec
from likely.data.rows import Ragged
from likely.inference import MAP
from likely.networks import GRU, LRU, LSTM, RNN, Network

GATES = {RNN: 1, GRU: 3, LSTM: 4}
KINDS = [*GATES, LRU]


def small(kind, **arguments):
    """Of width 4; with two layers."""
    torch.manual_seed(0)
    own = {"width": 4, "state": 4} if kind is LRU else {"hidden": 4}
    return kind(**own, layers=2, **arguments)


def sequences(generator=None):
    generator = generator or torch.Generator().manual_seed(1)
    return [torch.randn(length, 3, generator=generator) for length in (4, 1, 6, 2)]


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("bidirectional", [False, True])
def test_parameter_counts(kind, bidirectional):
    """Each gate: h weights for each input and each state, and a bias; the GRU's candidate has another one."""
    net = kind(5, layers=2, bidirectional=bidirectional).build((7, 3), 2)
    gates, ways = GATES[kind], 2 if bidirectional else 1
    layer = [ways * (gates * 5 * (d + 5 + 1) + (5 if kind is GRU else 0)) for d in (3, 5 * ways)]
    assert sum(p.numel() for p in net.parameters()) == sum(layer) + (5 * ways + 1) * 2


@pytest.mark.parametrize(("kind", "more"), [*((k, {}) for k in KINDS), *((k, {"bidirectional": True}) for k in GATES)])
@pytest.mark.parametrize("output", ["last", "mean", "each"])
def test_sequences_of_any_lengths_give_what_each_gives_alone(kind, more, output):
    net = small(kind, output=output, **more).build((6, 3), 2).double().eval()
    pieces = [piece.double() for piece in sequences()]
    together = net(Ragged.of(pieces))
    alone = [net(piece.unsqueeze(0))[0] for piece in pieces]
    wanted = torch.cat(alone) if output == "each" else torch.stack(alone)
    torch.testing.assert_close(together, wanted, rtol=1e-6, atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_tokens_in_rows_and_in_lists(kind):
    net = small(kind, tokens=5).build((6,), 2).eval()
    rows = torch.tensor([[0, 1, 2], [4, 4, 0]])
    torch.testing.assert_close(net(rows), net(Ragged.of(list(rows))), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(net(rows), net(rows.double()))
    tagger = small(kind, tokens=5, output="each").build((6,), 2).eval()
    assert tagger(rows).shape == (2, 3, 2)
    assert tagger(Ragged.of([[1], [2, 3]])).shape == (3, 2)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_numbers_are_steps_of_one(kind):
    net = small(kind).build((6,), 2).eval()
    x = torch.randn(5, 6)
    torch.testing.assert_close(net(x), net(x.unsqueeze(-1)))
    torch.testing.assert_close(net(x)[2:3], net(x[2:3]), rtol=1e-5, atol=1e-6)
    assert net(torch.empty(0, 6)).shape == (0, 2)


@pytest.mark.parametrize("kind", GATES)
def test_the_last_output_of_two_directions_has_seen_everything(kind):
    """The first step reaches the answer through the way ahead, the last step through the way back."""
    net = kind(4, bidirectional=True).build((6, 3), 1)
    x = torch.randn(2, 6, 3, requires_grad=True)
    ahead, back = net.layers[0](x).chunk(2, -1)
    torch.testing.assert_close(net(x), net.readout(torch.cat([ahead[:, -1], back[:, 0]], -1)))
    gradient = torch.autograd.grad(net(x).sum(), x)[0]
    assert bool((gradient != 0).all())


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_read_out_at_the_last_step_is_the_last_of_each(kind):
    torch.manual_seed(0)
    tagger, last = (small(kind, output=output).build((6, 3), 2).double() for output in ("each", "last"))
    last.load_state_dict(tagger.state_dict())
    x = torch.randn(5, 6, 3).double()
    torch.testing.assert_close(tagger(x)[:, -1], last(x))
    rows = Ragged.of([piece.double() for piece in sequences()])
    torch.testing.assert_close(tagger(rows)[rows.offsets[1:] - 1], last(rows))


@pytest.mark.parametrize("kind", KINDS)
def test_dropout_drops_in_training_only(kind):
    net = small(kind, dropout=0.5).build((6, 3), 1)
    x = torch.randn(4, 6, 3)
    assert not torch.equal(net(x), net(x))
    net.eval()
    torch.testing.assert_close(net(x), net(x), rtol=0, atol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_module_is_built_without_memory_and_starts_anew(kind):
    with torch.device("meta"):
        blank = small(kind).build((6, 3), 2)
    net = small(kind).build((6, 3), 2)
    assert {n: p.shape for n, p in blank.named_parameters()} == {n: p.shape for n, p in net.named_parameters()}
    torch.manual_seed(3)
    other = small(kind).build((6, 3), 2)
    torch.testing.assert_close(other.state_dict(), net.state_dict(), rtol=0, atol=0)  # `small` sets the seed
    changed = False
    for layer in net.modules():
        if hasattr(layer, "reset_parameters") and not isinstance(layer, nn.LayerNorm):
            layer.reset_parameters()
            changed = True
    assert changed
    assert not torch.equal(
        nn.utils.parameters_to_vector(net.parameters()), torch.nn.utils.parameters_to_vector(other.parameters())
    )


@pytest.mark.parametrize("kind", KINDS)
def test_models_take_every_form_of_sequences(kind):
    quick, rng = MAP(epochs=2), np.random.default_rng(0)
    dense = rng.normal(size=(8, 5, 3))
    assert Regressor(network=small(kind), inference=quick).fit(dense, dense[:, 0, 0]).predict(dense).shape == (8,)
    steps = Regressor(network=small(kind, output="each"), inference=quick).fit(dense, dense[..., 0])
    assert steps.predict(dense).shape == (8, 5)
    tokens = rng.integers(0, 4, (8, 5))
    by_token = Classifier(network=small(kind, tokens=4), inference=quick).fit(tokens, tokens[:, 0] > 1)
    assert by_token.predict_proba(tokens).shape == (8, 2)
    lists = [row[: 1 + i % 5] for i, row in enumerate(tokens)]
    tagged = Classifier(network=small(kind, tokens=4, output="each"), inference=quick).fit(
        lists, [t % 2 for t in lists]
    )
    assert [len(part) for part in tagged.predict(lists)] == [len(part) for part in lists]


@pytest.mark.parametrize("kind", KINDS)
def test_unknown_tokens_are_named(kind):
    model = Classifier(network=small(kind, tokens=3), inference=MAP(epochs=1))
    with pytest.raises(DataError, match="X has the token 3 at row 1, step 0; with tokens=3 they are 0 … 2"):
        model.fit([[0, 1], [3, 1]], [0, 1])
    with pytest.raises(DataError, match=r"X has the token -1 at X\[1\], step 2"):
        model.fit([[0, 1], [2, 1, -1]], [0, 1])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"layers": 0}, "layers must be a positive integer"),
        ({"output": "first"}, "output must be one of last, mean, each"),
        ({"dropout": 1.0}, "dropout must be a probability, 0 or more and below 1"),
        ({"tokens": 0}, "tokens must be how many different tokens there are"),
    ],
)
def test_a_wrong_argument_is_named(kind, arguments, message):
    with pytest.raises(SpecError, match=message):
        kind(**arguments)


@pytest.mark.parametrize("kind", GATES)
def test_wrong_sizes_are_named(kind):
    with pytest.raises(SpecError, match=rf"{kind.__name__}\(hidden=0\): hidden must be a positive integer"):
        kind(0)
    with pytest.raises(SpecError, match=r"would have [\d,]+ weights; it must keep them at 100,000,000 or fewer"):
        kind(10**6).build((5, 3), 1)
    with pytest.raises(SpecError, match="bidirectional must be True or False"):
        kind(bidirectional=1)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_are_no_sequences_are_refused(kind):
    with pytest.raises(SpecError, match=r"takes sequences \(steps, features\), or \(steps,\).* found \(3, 8, 8\)"):
        kind().build((3, 8, 8), 1)
    with pytest.raises(SpecError, match=r"takes rows of token numbers, \(steps,\); found \(5, 3, 2\)"):
        kind(tokens=4).build((5, 3, 2), 1)


@pytest.mark.parametrize("kind", KINDS)
def test_text_and_json_round_trip(kind):
    spec = small(kind, output="each", dropout=0.1, tokens=7)
    assert Network.parse(repr(spec)) == spec
    assert Spec.from_json(spec.to_json()) == spec
