"""Recurrent layers: the equations of their gates, torch's own layers, lengths, directions, transforms."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.func import functional_call, grad, jvp, stack_module_state, vmap

from likely.networks.layers.recurrent import GRULayer, LSTMLayer, RNNLayer, reversed_steps

LAYERS = {
    "tanh": RNNLayer,
    "relu": lambda *arguments: RNNLayer(*arguments, activation="relu"),
    "gru": GRULayer,
    "lstm": LSTMLayer,
}
D, H = 3, 4


@pytest.fixture(params=LAYERS)
def kind(request):
    torch.manual_seed(0)
    return request.param


def made(kind, bidirectional=False, dtype=torch.float64):
    """A layer with biases that are not 0."""
    layer = LAYERS[kind](D, H, bidirectional).to(dtype)
    for parameter in layer.parameters():
        nn.init.normal_(parameter, std=0.5)
    return layer


def transcribed(kind, direction, x):
    """The equations, step by step and gate by gate."""
    sigmoid, tanh = torch.sigmoid, torch.tanh
    W, U, b = (part.split(H) for part in (direction.input_weight, direction.hidden_weight, direction.bias))
    h = c = x.new_zeros(len(x), H)
    out = []
    for step in range(x.shape[1]):
        xt = x[:, step]
        if kind in ("tanh", "relu"):
            h = getattr(torch, kind)(xt @ W[0].T + h @ U[0].T + b[0])
        elif kind == "gru":
            r = sigmoid(xt @ W[0].T + h @ U[0].T + b[0])
            z = sigmoid(xt @ W[1].T + h @ U[1].T + b[1])
            n = tanh(xt @ W[2].T + b[2] + r * (h @ U[2].T + direction.candidate_bias))
            h = (1 - z) * n + z * h
        else:
            i = sigmoid(xt @ W[0].T + h @ U[0].T + b[0])
            f = sigmoid(xt @ W[1].T + h @ U[1].T + b[1])
            g = tanh(xt @ W[2].T + h @ U[2].T + b[2])
            o = sigmoid(xt @ W[3].T + h @ U[3].T + b[3])
            c = f * c + i * g
            h = o * tanh(c)
        out.append(h)
    return torch.stack(out, 1)


@pytest.mark.parametrize(("dtype", "near"), [(torch.float32, 1e-6), (torch.float64, 1e-12)])
def test_the_equations(kind, dtype, near):
    layer, x = made(kind, dtype=dtype), torch.randn(5, 7, D, dtype=dtype)
    torch.testing.assert_close(layer(x), transcribed(kind, layer.ahead, x), rtol=near, atol=near)
    one = x[:, :1]
    torch.testing.assert_close(layer(one), transcribed(kind, layer.ahead, one), rtol=near, atol=near)


def test_gradients_are_those_of_the_equations(kind):
    layer, x = made(kind), torch.randn(5, 7, D).double()
    gradients, wanted = (
        torch.autograd.grad(out.square().sum(), list(layer.parameters()))
        for out in (layer(x), transcribed(kind, layer.ahead, x))
    )
    for own, other in zip(gradients, wanted, strict=True):
        torch.testing.assert_close(own, other)


@pytest.mark.parametrize("bidirectional", [False, True])
def test_torch_agrees_with_the_same_weights(kind, bidirectional):
    layer, x = made(kind, bidirectional), torch.randn(5, 7, D).double()
    own = {"gru": nn.GRU, "lstm": nn.LSTM}.get(kind, nn.RNN)
    more = {"nonlinearity": kind} if own is nn.RNN else {}
    peer = own(D, H, batch_first=True, bidirectional=bidirectional, **more).double()
    for suffix, direction in (("", layer.ahead), ("_reverse", layer.back)):
        if direction is not None:
            for name, weight in zip(("weight_ih", "weight_hh", "bias_ih", "bias_hh"), direction.weights(), strict=True):
                getattr(peer, f"{name}_l0{suffix}").data.copy_(weight)
    torch.testing.assert_close(layer(x), peer(x)[0], rtol=1e-10, atol=1e-10)


def test_two_directions_are_one_and_one_from_the_end(kind):
    layer, x = made(kind, bidirectional=True), torch.randn(5, 7, D).double()
    ahead, back = layer(x).chunk(2, -1)
    torch.testing.assert_close(ahead, transcribed(kind, layer.ahead, x))
    torch.testing.assert_close(back, transcribed(kind, layer.back, x.flip(1)).flip(1))


@pytest.mark.parametrize("largest", [0.3, 0.9])
def test_gradients_vanish_where_the_recurrent_map_shrinks(largest):
    """‖∂h_T/∂x₁‖ ≤ σ₁(U)^{T−1} ‖W‖ for slopes of 1 or less."""
    layer = made("tanh")
    weight = layer.ahead.hidden_weight
    weight.data.mul_(largest / torch.linalg.matrix_norm(weight, 2))
    x = 0.1 * torch.randn(20, D).double()
    for steps in (1, 5, 20):
        jacobian = torch.autograd.functional.jacobian(lambda rows: layer(rows[None])[0, -1], x[:steps])[:, 0]
        most = largest ** (steps - 1) * torch.linalg.matrix_norm(layer.ahead.input_weight, 2)
        assert 0 < torch.linalg.matrix_norm(jacobian, 2) <= most


@pytest.mark.parametrize("bidirectional", [False, True])
def test_what_comes_after_the_end_changes_nothing(kind, bidirectional):
    layer = made(kind, bidirectional)
    lengths = torch.tensor([3, 7, 1, 5])
    present = torch.arange(7) < lengths.unsqueeze(1)
    x = torch.randn(4, 7, D).double()
    together = layer(x, present)
    for row, length in enumerate(lengths.tolist()):
        alone = layer(x[row : row + 1, :length])
        torch.testing.assert_close(together[row, :length], alone[0], rtol=1e-6, atol=1e-10)


def test_reversed_twice_is_the_same():
    present = torch.arange(5) < torch.tensor([[5], [2], [4]])
    x = torch.randn(3, 5, 2)
    torch.testing.assert_close(reversed_steps(reversed_steps(x, present), present), x)
    torch.testing.assert_close(reversed_steps(x, present)[1], torch.cat([x[1, :2].flip(0), x[1, 2:]]))


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.filterwarnings("ignore:.torch.jit.script:DeprecationWarning")  # torch's own, at its first jvp
def test_transforms_give_what_members_give_by_themselves(kind, bidirectional):
    """vmap over stacked parameters, its gradient, and a forward derivative, against one by one and a difference."""
    members = [made(kind, bidirectional, torch.float32) for _ in range(3)]
    x = torch.randn(5, 6, D)
    parameters, _ = stack_module_state(members)
    parameters = {name: value.detach() for name, value in parameters.items()}

    def total(own):
        return functional_call(members[0], own, (x,)).square().sum()

    torch.testing.assert_close(vmap(total)(parameters), torch.stack([m(x).square().sum() for m in members]))
    gradients = vmap(grad(total))(parameters)
    for i, member in enumerate(members):
        apart = torch.autograd.grad(member(x).square().sum(), list(member.parameters()))
        for (name, _), wanted in zip(member.named_parameters(), apart, strict=True):
            torch.testing.assert_close(gradients[name][i], wanted, rtol=1e-4, atol=1e-4)
    first = {name: value[0] for name, value in parameters.items()}
    _, forward = jvp(total, (first,), (first,))
    directional = sum((gradients[name][0] * first[name]).sum() for name in first)
    torch.testing.assert_close(forward, directional, rtol=1e-4, atol=1e-4)


def test_states_start_orthogonal_and_memory_starts_by_keeping():
    torch.manual_seed(0)
    direction = LSTMLayer(3, 6).ahead
    for gate in direction.hidden_weight.split(6):
        torch.testing.assert_close(gate @ gate.T, torch.eye(6), rtol=0, atol=1e-5)
    forget = direction.bias.split(6)[1]
    torch.testing.assert_close(forget, torch.ones(6))
    assert direction.bias.sum() == forget.sum()


def test_a_layer_without_rows_gives_none(kind):
    assert made(kind, bidirectional=True)(torch.zeros(0, 7, D).double()).shape == (0, 7, 2 * H)
