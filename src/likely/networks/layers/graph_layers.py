"""Layers of graph networks: h at the nodes → h⁺ at the nodes, with what the neighbours send.

    GraphConvolution       h⁺ = Ā h W + b                                    Ā = D^(-1/2) (A + I) D^(-1/2)
    ChebyshevConvolution   h⁺ = Σₖ Tₖ(L̃) h Wₖ + b                           L̃ = L − I, Tₖ Chebyshev's polynomials
    GraphAttention         h⁺ₜ = Σₛ qₜₛ W hₛ + b                             q = softmaxₛ(LeakyReLU(u·[Whₜ, Whₛ, xₜₛ]))
    MessagePassingLayer    h⁺ₜ = ψ(hₜ, ⊕ₛ φ(hₛ, hₜ, xₜₛ)),  or ψ((1 + ε)hₜ + ⊕ₛ hₛ)

Layers are called with graphs and h; without h they take the graphs' own features, by a sparse product where these are
mostly 0. Renumbering the nodes renumbers h⁺ alike.
"""

from __future__ import annotations

from functools import partial
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...data.graph import Graphs
from .activation import activation as activation_named
from .dropout import Dropout, entry_mask
from .graph import (
    Aggregate,
    adjacency,
    aggregate,
    laplacian,
    normalised_adjacency,
    segment_softmax,
    sources,
    sparse_features,
    targets,
)
from .init import glorot, initialise

__all__ = ["ChebyshevConvolution", "GraphAttention", "GraphConvolution", "MessagePassingLayer", "NodeLinear"]

SLOPE = 0.2
"""Of the LeakyReLU that attention scores go through."""


class NodeLinear(nn.Module):
    """dropout(h) Wᵀ at each node, with Glorot's weights.

    >>> from likely.networks.layers.graph import graphs_of
    >>> NodeLinear(3, 2)(graphs_of(torch.ones(5, 3))).shape
    torch.Size([5, 2])
    """

    def __init__(self, in_features: int, out_features: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(out_features, in_features))
        self.dropout = Dropout(dropout)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Start anew."""
        glorot(self.weight)

    def forward(self, graphs: Graphs, h: Tensor | None = None) -> Tensor:
        own = sparse_features(graphs) if h is None else None
        if own is None:
            return functional.linear(self.dropout(graphs.features if h is None else h), self.weight)
        if self.dropout.training and self.dropout.p:  # of zeros there is nothing to drop
            own = own.with_values(partial(self._kept, own.parts.columns))
        return own @ self.weight.T

    def _kept(self, columns: Tensor, values: Tensor) -> Tensor:
        return values * entry_mask(values, columns, self.weight.shape[1], self.dropout.p)


class GraphConvolution(nn.Module):
    """Ā dropout(h) W + b, with Ā the normalised adjacency.

    >>> from likely.data.graph import Graph
    >>> triangle = Graphs.of([Graph(torch.eye(3), [[0, 1, 2, 1, 2, 0], [1, 2, 0, 0, 1, 2]])])
    >>> GraphConvolution(3, 2)(triangle).shape
    torch.Size([3, 2])
    """

    def __init__(self, in_features: int, out_features: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear = NodeLinear(in_features, out_features, dropout)
        self.bias = nn.Parameter(torch.zeros(out_features))

    def forward(self, graphs: Graphs, h: Tensor | None = None) -> Tensor:
        return normalised_adjacency(graphs) @ self.linear(graphs, h) + self.bias


class ChebyshevConvolution(nn.Module):
    """Σₖ Tₖ(L̃) dropout(h) Wₖ + b for k = 0 … order: a filter of the graph's frequencies, without its eigenvectors.

    L̃ = L − I has its eigenvalues in [−1, 1], since those of the symmetric Laplacian L are at most 2. The sum is taken
    by Clenshaw's recurrence, which multiplies by L̃ as often as `order` says.

    >>> from likely.data.graph import Graph
    >>> triangle = Graphs.of([Graph(torch.eye(3), [[0, 1, 2, 1, 2, 0], [1, 2, 0, 0, 1, 2]])])
    >>> ChebyshevConvolution(3, 2, order=4)(triangle).shape
    torch.Size([3, 2])
    """

    def __init__(self, in_features: int, out_features: int, order: int = 3, dropout: float = 0.0) -> None:
        super().__init__()
        self.order = order
        self.linear = NodeLinear(in_features, (order + 1) * out_features, dropout)
        self.bias = nn.Parameter(torch.zeros(out_features))

    def forward(self, graphs: Graphs, h: Tensor | None = None) -> Tensor:
        scaled = laplacian(graphs, "symmetric", shift=-1.0)
        terms = self.linear(graphs, h).chunk(self.order + 1, 1)
        later = last = torch.zeros_like(terms[0])
        for term in reversed(terms[1:]):
            last, later = term + 2 * (scaled @ last) - later, last
        return terms[0] + scaled @ last - later + self.bias


class GraphAttention(nn.Module):
    """For each head, Σₛ qₜₛ W hₛ over the neighbours s of t and t itself, with attention q; heads joined.

        qₜₛ = softmaxₛ(LeakyReLU(a·Whₜ + b·Whₛ + c·xₜₛ))

    x are the features of edges; an edge from a node to itself that attention adds has none. `dropout` is that of h,
    `attention_dropout` that of q.

    >>> from likely.data.graph import Graph
    >>> triangle = Graphs.of([Graph(torch.eye(3), [[0, 1, 2, 1, 2, 0], [1, 2, 0, 0, 1, 2]])])
    >>> GraphAttention(3, 2, heads=4)(triangle).shape
    torch.Size([3, 8])
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        heads: int = 1,
        edge_features: int = 0,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        join: Literal["concatenate", "mean"] = "concatenate",
    ) -> None:
        super().__init__()
        self.heads, self.join = heads, join
        self.linear = NodeLinear(in_features, heads * out_features, dropout)
        self.at_target = nn.Parameter(torch.empty(heads, out_features))
        self.at_source = nn.Parameter(torch.empty(heads, out_features))
        self.at_edge = nn.Linear(edge_features, heads, bias=False) if edge_features else None
        self.bias = nn.Parameter(torch.zeros(out_features * (heads if join == "concatenate" else 1)))
        self.dropout = Dropout(attention_dropout)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Start anew."""
        for vector in (self.at_target, self.at_source):
            glorot(vector)

    def coefficients(self, graphs: Graphs, h: Tensor | None = None) -> Tensor:
        """q of each edge, and then of each node with itself, for every head: (edges + nodes, heads)."""
        return self._attention(graphs, self._values(graphs, h))

    def forward(self, graphs: Graphs, h: Tensor | None = None) -> Tensor:
        values = self._values(graphs, h)  # (n, heads, d)
        edges, loops = self._attention(graphs, values).tensor_split([-len(values)])
        q = torch.cat([self.dropout(edges), self.dropout(loops)])  # (m, heads)
        messages = sources(graphs, loops=True) @ values.flatten(1)
        weighed = messages.unflatten(1, values.shape[1:]) * q.unsqueeze(-1)
        out = targets(graphs, loops=True).T @ weighed.flatten(1)
        return (out.unflatten(1, values.shape[1:]).mean(1) if self.join == "mean" else out) + self.bias

    def _values(self, graphs: Graphs, h: Tensor | None) -> Tensor:
        return self.linear(graphs, h).unflatten(1, (self.heads, -1))

    def _attention(self, graphs: Graphs, values: Tensor) -> Tensor:
        to = targets(graphs, loops=True)
        scores = to @ (values * self.at_target).sum(-1)
        scores = scores + sources(graphs, loops=True) @ (values * self.at_source).sum(-1)
        if self.at_edge is not None and graphs.edge_features is not None:
            scores = scores + functional.pad(self.at_edge(graphs.edge_features), (0, 0, 0, len(values)))
        return segment_softmax(functional.leaky_relu(scores, SLOPE), to)


class MessagePassingLayer(nn.Module):
    """ψ(hₜ, ⊕ₛ φ(hₛ, hₜ, xₜₛ)) with φ and ψ perceptrons of one hidden layer and ⊕ the sum, mean or maximum.

    With `message="neighbour"` what is sent is hₛ itself (or α(hₛ + E xₜₛ) where edges have features), and the update is
    ψ((1 + ε)hₜ + ⊕ₛ hₛ) with ε learned; with the sum this tells apart whatever Weisfeiler and Lehman's test does.

    >>> from likely.data.graph import Graph
    >>> triangle = Graphs.of([Graph(torch.eye(3), [[0, 1, 2, 1, 2, 0], [1, 2, 0, 0, 1, 2]])])
    >>> MessagePassingLayer(3, 2)(triangle).shape
    torch.Size([3, 2])
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        edge_features: int = 0,
        aggregate: Aggregate = "sum",
        message: Literal["mlp", "neighbour"] = "mlp",
        activation: str = "relu",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.aggregate, self.message = aggregate, message
        self.activation = activation_named(activation)
        self.dropout = Dropout(dropout)
        if message == "mlp":
            self.to_target = _linear(in_features, out_features, activation, bias=True)
            self.to_source = _linear(in_features, out_features, activation, bias=False)
            self.sent = _linear(out_features, out_features, activation, bias=True)
            self.arrived = _linear(out_features, out_features, activation, bias=False)
        else:
            self.epsilon = nn.Parameter(torch.zeros(()))
        width = out_features if message == "mlp" else in_features
        self.of_edge = _linear(edge_features, width, activation, bias=False) if edge_features else None
        self.own = _linear(in_features, out_features, activation, bias=True)
        self.updated = _linear(out_features, out_features, activation, bias=True)

    def forward(self, graphs: Graphs, h: Tensor | None = None) -> Tensor:
        h = self.dropout(graphs.features if h is None else h)
        if self.message == "neighbour":
            hidden = self.own((1 + self.epsilon) * h + self._neighbours(graphs, h))
        else:
            hidden = self.own(h) + self.arrived(self._messages(graphs, h))
        return self.updated(self.activation(hidden))

    def _messages(self, graphs: Graphs, h: Tensor) -> Tensor:
        """⊕ φ: the first layer of φ acts on nodes, which are fewer than edges, and is then carried along these."""
        to = targets(graphs)
        hidden = sources(graphs) @ self.to_source(h) + to @ self.to_target(h)
        if self.of_edge is not None and graphs.edge_features is not None:
            hidden = hidden + self.of_edge(graphs.edge_features)
        return aggregate(self.sent(self.activation(hidden)), to, self.aggregate)

    def _neighbours(self, graphs: Graphs, h: Tensor) -> Tensor:
        if self.of_edge is not None and graphs.edge_features is not None:
            sent = self.activation(sources(graphs) @ h + self.of_edge(graphs.edge_features))
            return aggregate(sent, targets(graphs), self.aggregate)
        if self.aggregate == "sum":
            return adjacency(graphs) @ h
        return aggregate(sources(graphs) @ h, targets(graphs), self.aggregate)


def _linear(in_features: int, out_features: int, activation: str, bias: bool) -> nn.Linear:
    layer = nn.Linear(in_features, out_features, bias=bias)
    initialise(layer.weight.data, "he", activation)
    return layer
