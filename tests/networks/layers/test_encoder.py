"""The blocks of a transformer against torch's, and what positions, masks and the class token do to an encoder."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from likely.networks.layers.encoder import Encoder, EncoderBlock


@pytest.fixture(autouse=True)
def _double():
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def encoder(**choice):
    return Encoder(8, 2, 2, **({"longest": 12} | choice)).eval()


def stir(module):
    """Weights that no symmetry holds for."""
    for parameter in module.parameters():
        parameter.data.add_(0.3 * torch.randn_like(parameter))
    return module


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_block_agrees_with_torch(norm, causal):
    peer = nn.TransformerEncoderLayer(8, 2, 20, 0.0, "gelu", batch_first=True, norm_first=norm == "pre")
    stir(peer)
    ours = EncoderBlock(8, 2, 20, norm=norm)
    parts, theirs = ours.attention.projections, peer.self_attn
    with torch.no_grad():
        for into, source in ((parts.query, slice(0, 8)), (parts.key_value, slice(8, 24))):
            into.weight.copy_(theirs.in_proj_weight[source])
            into.bias.copy_(theirs.in_proj_bias[source])
    pairs = [(parts.out, theirs.out_proj), (ours.change[0], peer.linear1), (ours.change[-1], peer.linear2)]
    pairs += zip(ours.norms, (peer.norm1, peer.norm2), strict=True)
    for own, other in pairs:
        own.load_state_dict(other.state_dict())
    x = torch.randn(3, 5, 8)
    present = torch.arange(5) < torch.tensor([[5], [3], [1]])
    hidden = torch.ones(5, 5, dtype=torch.bool).triu(1) if causal else None
    expected = peer(x, src_mask=hidden, src_key_padding_mask=~present)
    torch.testing.assert_close(ours(x, present, causal=causal)[present], expected[present])


def test_post_norm_leaves_steps_of_mean_0_and_variance_1():
    out = EncoderBlock(64, 4, norm="post")(5 * torch.randn(3, 7, 64) + 2)
    torch.testing.assert_close(out.mean(-1), torch.zeros(3, 7))
    torch.testing.assert_close(out.var(-1, correction=0), torch.ones(3, 7), rtol=1e-3, atol=0)


def test_pre_norm_passes_on_what_its_branches_do_not_change():
    block, x = EncoderBlock(8, 2, start=0.0), torch.randn(3, 5, 8)
    torch.testing.assert_close(block(x), x)


def test_deep_pre_norm_keeps_the_size_of_signals():
    """The branches of all blocks together have the variance of about one: not that of 2L."""
    x = torch.randn(16, 20, 32)
    for layers in (2, 32):
        blocks = Encoder(32, 4, layers, longest=20, positions=None, output="each").blocks
        assert 1.2 < nn.Sequential(*blocks)(x).var() < 3


@pytest.mark.parametrize("attention", ["softmax", "linear"])
@pytest.mark.parametrize("output", ["class", "mean", "each"])
def test_without_positions_steps_are_a_set(output, attention):
    net = stir(encoder(positions=None, output=output, attention=attention))
    x, order = torch.randn(3, 6, 8), torch.randperm(6)
    out = net(x)
    torch.testing.assert_close(net(x[:, order]), out[:, order] if output == "each" else out)


@pytest.mark.parametrize("positions", ["learned", "sinusoidal", "relative"])
@pytest.mark.parametrize("output", ["class", "mean"])
def test_with_positions_they_are_not(output, positions):
    net = stir(encoder(positions=positions, output=output))
    x = torch.randn(3, 6, 8)
    assert (net(x) - net(x.roll(1, 1))).abs().max() > 1e-3


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("output", ["class", "mean", "each"])
def test_relative_positions_do_not_see_a_shift_of_all_steps(output, causal):
    """The same steps, moved by three places, give the same answers; with absolute positions they give others."""
    x = torch.randn(2, 5, 8)
    moved = nn.functional.pad(x, (0, 0, 3, 0), value=7.0)
    present = (torch.arange(8) >= 3).expand(2, 8)
    for positions in ("relative", "learned", "sinusoidal"):
        net = stir(encoder(positions=positions, output=output, causal=causal))
        here, there = net(x), net(moved, present)
        gap = (here - (there[:, 3:] if output == "each" else there)).abs().max()
        assert gap < 1e-9 if positions == "relative" else gap > 1e-3


@pytest.mark.parametrize("attention", ["softmax", "linear"])
def test_causal_steps_see_their_past_and_the_class_token_sees_all(attention):
    net = stir(encoder(positions=None, causal=True, output="each", attention=attention))
    x = torch.randn(1, 5, 8, requires_grad=True)
    for t in range(5):
        size = torch.autograd.grad(net(x)[0, t].sum(), x)[0][0].abs().amax(-1)
        assert (size[: t + 1] > 0).all()
        assert (size[t + 1 :] == 0).all()
    reading = stir(encoder(causal=True, attention=attention))
    assert (torch.autograd.grad(reading(x).sum(), x)[0][0].abs().amax(-1) > 0).all()


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("positions", ["learned", "sinusoidal", "relative"])
@pytest.mark.parametrize("output", ["class", "mean", "last", "each"])
def test_what_is_not_there_changes_nothing(output, positions, norm):
    net, x = stir(encoder(positions=positions, output=output, norm=norm)), torch.randn(3, 6, 8)
    present = torch.arange(6) < torch.tensor([[6], [2], [4]])
    out = net(torch.where(present.unsqueeze(-1), x, 1e2), present)
    for row, length in enumerate((6, 2, 4)):
        alone = net(x[row : row + 1, :length])[0]
        torch.testing.assert_close(out[row, :length] if output == "each" else out[row], alone)


def test_concatenated_positions_have_half_of_the_width():
    net = encoder(join="concatenate", positions="sinusoidal", output="each")
    assert net.in_features == 4
    assert net(torch.randn(2, 5, 4)).shape == (2, 5, 8)
    assert Encoder(7, 1, 1, longest=3, join="concatenate").in_features == 4
