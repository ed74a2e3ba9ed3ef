"""Recurrent layers: a state that each step of a sequence changes, by the same weights at every step.

    RNN    h_t = φ(W x_t + U h_{t−1} + b)
    GRU    r = σ(W_r x + U_r h + b_r),  z = σ(W_z x + U_z h + b_z)                    reset, update
           h_t = (1 − z) ⊙ tanh(W_n x + b_n + r ⊙ (U_n h + c)) + z ⊙ h
    LSTM   i, f, o = σ(W x + U h + b) each,  g = tanh(W_g x + U_g h + b_g)             input, forget, output
           c_t = f ⊙ c_{t−1} + i ⊙ g,  h_t = o ⊙ tanh(c_t)

Whole sequences go through torch's fused operations. Those know no `vmap` and no forward derivatives, so inside them the
steps are taken one by one.
"""

from __future__ import annotations

from typing import ClassVar, Literal, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...core.errors import SpecError
from .init import glorot, orthogonal

__all__ = ["GRULayer", "LSTMLayer", "RNNLayer", "RecurrentLayer", "Runs", "reversed_steps"]

State = tuple[Tensor, ...]


class Runs(Protocol):
    """Where the gradient through time is cut or weakened in training."""

    def runs(self, steps: int) -> list[tuple[int, float]]:
        """Lengths of runs that make up so many steps, and the factor of the gradient that leaves each at its start."""
        ...


class RecurrentLayer(nn.Module):
    """One layer over steps (n, t, d) → (n, t, hidden), or (n, t, 2·hidden) with a second direction, from the end.

    `present` (n, t) says which steps there are, where sequences have different lengths; each has its own end. While
    `truncation` is set, training passes gradients back through time only as far as it says.
    """

    truncation: Runs | None = None
    stepwise = True

    def __init__(self, direction: type[Direction], in_features: int, hidden: int, bidirectional: bool) -> None:
        super().__init__()
        self.ahead = direction(in_features, hidden)
        self.back = direction(in_features, hidden) if bidirectional else None

    def forward(self, x: Tensor, present: Tensor | None = None, state: State | None = None) -> Tensor:
        """`state` is where the direction ahead starts, zeros unless given."""
        ahead = self._through(self.ahead, x, state)
        if self.back is None:
            return ahead
        back = self._through(self.back, reversed_steps(x, present))
        return torch.cat([ahead, reversed_steps(back, present)], -1)

    def start(self, rows: int) -> State:
        """The initial state for `rows` sequences, before their first step."""
        if self.back is not None:
            raise SpecError("A second direction starts at the end of a sequence: step needs bidirectional=False.")
        return self.ahead.start(self.ahead.input_weight.new_empty(rows, 0))

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """The output (n, hidden) of one step (n, d), and the state after it."""
        state = self.ahead.step(functional.linear(x, self.ahead.input_weight, self.ahead.bias), state)
        return state[0], state

    def _through(self, direction: Direction, x: Tensor, state: State | None = None) -> Tensor:
        state = direction.start(x) if state is None else state
        if self.truncation is None or not self.training:
            return direction(x, state)[0]
        outputs = []
        runs = self.truncation.runs(x.shape[1])
        for (_, factor), part in zip(runs, x.split([length for length, _ in runs], 1), strict=True):
            state = tuple(_weakened(tensor, factor) for tensor in state)
            out, state = direction(part, state)
            outputs.append(out)
        return torch.cat(outputs, 1)


class RNNLayer(RecurrentLayer):
    """h_t = φ(W x_t + U h_{t−1} + b), φ = tanh or ReLU.

    >>> RNNLayer(3, 5)(torch.zeros(2, 7, 3)).shape
    torch.Size([2, 7, 5])
    """

    def __init__(
        self,
        in_features: int,
        hidden: int,
        bidirectional: bool = False,
        activation: Literal["tanh", "relu"] = "tanh",
    ) -> None:
        super().__init__({"tanh": TanhDirection, "relu": ReLUDirection}[activation], in_features, hidden, bidirectional)


class GRULayer(RecurrentLayer):
    """Gated recurrent units: a reset and an update gate decide how much of the state is used, and kept.

    >>> GRULayer(3, 5, bidirectional=True)(torch.zeros(2, 7, 3)).shape
    torch.Size([2, 7, 10])
    """

    def __init__(self, in_features: int, hidden: int, bidirectional: bool = False) -> None:
        super().__init__(GRUDirection, in_features, hidden, bidirectional)


class LSTMLayer(RecurrentLayer):
    """Long short-term memory: cells that gates write to, keep and read. They start by keeping: b_f = 1.

    >>> LSTMLayer(3, 5)(torch.zeros(2, 7, 3)).shape
    torch.Size([2, 7, 5])
    """

    def __init__(self, in_features: int, hidden: int, bidirectional: bool = False) -> None:
        super().__init__(LSTMDirection, in_features, hidden, bidirectional)


def reversed_steps(x: Tensor, present: Tensor | None = None) -> Tensor:
    """Each sequence of (n, t, d) from its own end to its start; what comes after the end stays where it is.

    >>> reversed_steps(torch.tensor([[[1], [2], [0]]]), torch.tensor([[True, True, False]])).ravel().tolist()
    [2, 1, 0]
    """
    if present is None:
        return x.flip(1)
    step = torch.arange(x.shape[1], device=x.device)
    source = torch.where(present, present.sum(1, keepdim=True) - 1 - step, step)
    return x.gather(1, source.unsqueeze(-1).expand(*source.shape, x.shape[-1]))


class Direction(nn.Module):
    """The recurrence itself: weights of all gates, one below the other; from steps and a state to outputs and a state.

    A single bias per gate is all there is to learn, except in the GRU; torch's operations are given zeros for a second.
    """

    gates: ClassVar[int] = 1
    states: ClassVar[int] = 1

    def __init__(self, in_features: int, hidden: int) -> None:
        super().__init__()
        self.in_features, self.hidden = in_features, hidden
        self.input_weight = nn.Parameter(torch.empty(self.gates * hidden, in_features))
        self.hidden_weight = nn.Parameter(torch.empty(self.gates * hidden, hidden))
        self.bias = nn.Parameter(torch.empty(self.gates * hidden))
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Glorot's weights for inputs and orthogonal ones for the state, gate by gate; biases are 0."""
        for gate in self.input_weight.chunk(self.gates):
            glorot(gate)
        for gate in self.hidden_weight.chunk(self.gates):
            orthogonal(gate)
        self.bias.zero_()

    def start(self, x: Tensor) -> State:
        """The state before the first step: zeros."""
        return (x.new_zeros(len(x), self.hidden),) * self.states

    def forward(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        if x.shape[1] > 1 and x.shape[0] and not _transformed(x, *self.parameters()):
            return self.fused(x, state)
        outputs = []
        for inputs in functional.linear(x, self.input_weight, self.bias).unbind(1):
            state = self.step(inputs, state)
            outputs.append(state[0])
        return torch.stack(outputs, 1), state

    def step(self, inputs: Tensor, state: State) -> State:
        """The next state from W x + b, (n, gates·hidden), and the one before."""
        raise NotImplementedError

    def fused(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """All steps at once."""
        raise NotImplementedError

    def weights(self) -> list[Tensor]:
        """As torch's operations take them."""
        return [self.input_weight, self.hidden_weight, self.bias, torch.zeros_like(self.bias)]

    def extra_repr(self) -> str:
        """As torch shows its own."""
        return f"{self.in_features}, {self.hidden}"


class TanhDirection(Direction):
    """h_t = tanh(W x_t + U h_{t−1} + b)."""

    def step(self, inputs: Tensor, state: State) -> State:
        return (torch.tanh(inputs + functional.linear(state[0], self.hidden_weight)),)

    def fused(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        out, h = torch.rnn_tanh(x, state[0].unsqueeze(0), self.weights(), True, 1, 0.0, self.training, False, True)
        return out, (h[0],)


class ReLUDirection(Direction):
    """h_t = max(0, W x_t + U h_{t−1} + b)."""

    def step(self, inputs: Tensor, state: State) -> State:
        return (torch.relu(inputs + functional.linear(state[0], self.hidden_weight)),)

    def fused(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        out, h = torch.rnn_relu(x, state[0].unsqueeze(0), self.weights(), True, 1, 0.0, self.training, False, True)
        return out, (h[0],)


class GRUDirection(Direction):
    """Gates r, z and the candidate n, whose part of the state has a bias of its own inside the reset."""

    gates = 3

    def __init__(self, in_features: int, hidden: int) -> None:
        super().__init__(in_features, hidden)
        self.candidate_bias = nn.Parameter(torch.zeros(hidden))

    @torch.no_grad()
    def reset_parameters(self) -> None:
        super().reset_parameters()
        if "candidate_bias" in self._parameters:
            self.candidate_bias.zero_()

    def step(self, inputs: Tensor, state: State) -> State:
        h = state[0]
        of_x, of_h = inputs.chunk(3, -1), functional.linear(h, self.hidden_weight).chunk(3, -1)
        r, z = torch.sigmoid(of_x[0] + of_h[0]), torch.sigmoid(of_x[1] + of_h[1])
        n = torch.tanh(of_x[2] + r * (of_h[2] + self.candidate_bias))
        return ((1 - z) * n + z * h,)

    def fused(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        out, h = torch.gru(x, state[0].unsqueeze(0), self.weights(), True, 1, 0.0, self.training, False, True)
        return out, (h[0],)

    def weights(self) -> list[Tensor]:
        second = functional.pad(self.candidate_bias, (2 * self.hidden, 0))
        return [self.input_weight, self.hidden_weight, self.bias, second]


class LSTMDirection(Direction):
    """Gates i, f, g, o, and a state of two: h, which is the output, and the cells c."""

    gates = 4
    states = 2

    @torch.no_grad()
    def reset_parameters(self) -> None:
        super().reset_parameters()
        self.bias.chunk(4)[1].fill_(1.0)

    def step(self, inputs: Tensor, state: State) -> State:
        h, c = state
        i, f, g, o = (inputs + functional.linear(h, self.hidden_weight)).chunk(4, -1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c

    def fused(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        before = tuple(part.unsqueeze(0) for part in state)
        out, h, c = torch.lstm(x, before, self.weights(), True, 1, 0.0, self.training, False, True)
        return out, (h[0], c[0])


def _weakened(state: Tensor, factor: float) -> Tensor:
    """The same value, through which a gradient passes multiplied by the factor."""
    fixed = state.detach()
    return fixed if factor == 0 else fixed + factor * (state - fixed)


def _transformed(*tensors: Tensor) -> bool:
    """Whether one of them is inside `torch.func`'s transforms, for which fused operations have no rules."""
    return any(torch._C._functorch.is_functorch_wrapped_tensor(tensor) for tensor in tensors)
