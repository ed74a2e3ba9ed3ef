import pytest
import torch

from likely.core.errors import SpecError
from likely.models.language.bodies import body_of, reader_of, refuse_weights, width_of, writer_of
from likely.networks import GRU, LRU, LSTM, MLP, RNN, Transformer

ENCODERS = [RNN(4, bidirectional=True), LSTM(4, layers=2), Transformer(4, 2, 1), Transformer(4, 2, 1, norm="post")]
DECODERS = [
    RNN(6),
    LSTM(4, layers=2),
    Transformer(4, 2, 2),
    Transformer(4, 2, 1, positions="relative", norm="post"),
    Transformer(4, 2, 1, positions="sinusoidal", join="concatenate"),
    Transformer(4, 2, 1, attention="linear"),
]


@torch.no_grad()
@pytest.mark.parametrize("decoder", DECODERS, ids=repr)
@pytest.mark.parametrize("encoder", ENCODERS, ids=repr)
def test_any_encoder_goes_with_any_decoder_whole_or_step_by_step(encoder, decoder):
    torch.manual_seed(0)
    seen = torch.arange(5) < torch.tensor([[5], [3]])
    reader, width = reader_of(encoder, 5)
    writer = writer_of(decoder, 4, width, "scaled")
    memory = reader(torch.randn(2, 5, width_of(encoder)), seen)
    x = torch.randn(2, 4, width_of(decoder))
    whole = writer(x, memory, seen)
    assert whole.shape == (2, 4, writer.width)
    state, looked_at = writer.start(memory, seen), writer.looked_at(memory)
    for t in range(4):
        out, state = writer.step(x[:, t], state, looked_at, seen)
        torch.testing.assert_close(out, whole[:, t], rtol=1e-5, atol=1e-5)
    weights = writer.weights(x, memory, seen)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 4))
    assert bool((weights[1, :, 3:] == 0).all())


def test_what_is_no_body_is_named():
    with pytest.raises(SpecError, match=r"encoder=MLP\(\): Seq2Seq needs a Transformer, an RNN, a GRU or an LSTM"):
        body_of(MLP(), "encoder")
    with pytest.raises(SpecError, match="decoder=LRU"):
        body_of(LRU(), "decoder")
    with pytest.raises(SpecError, match=r"decoder=GRU\(bidirectional=True\) looks ahead"):
        body_of(GRU(bidirectional=True), "decoder")


@pytest.mark.parametrize("spec", [GRU(10**5), Transformer(10**5, 1, 1)], ids=repr)
def test_a_slip_of_the_keyboard_is_refused(spec):
    with pytest.raises(SpecError, match=r"would have .* weights"):
        refuse_weights(spec, 10, 10)
