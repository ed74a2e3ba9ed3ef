"""Layers of graph networks: each is its formula, written out densely, node by node or edge by edge."""

from __future__ import annotations

import networkx as nx
import pytest
import torch
from torch.func import functional_call, jacrev, vmap
from torch.nn.functional import leaky_relu

from likely.data.graph import Graph, Graphs
from likely.networks.layers.graph import adjacency, graphs_of, laplacian, normalised_adjacency, sources, targets
from likely.networks.layers.graph_layers import (
    ChebyshevConvolution,
    GraphAttention,
    GraphConvolution,
    MessagePassingLayer,
    NodeLinear,
)


def made(edge_features=0):
    """A random graph and a path with a node by itself, in float64."""
    path = nx.path_graph(4)
    path.add_node(4)
    graphs = []
    for drawn in (nx.gnp_random_graph(8, 0.4, seed=1), path):
        graph = Graph.from_networkx(drawn)
        values = torch.randn(graph.edges.shape[1], edge_features) if edge_features else None
        graphs.append(Graph(torch.randn(len(graph), 3), graph.edges, values))
    return Graphs.of(graphs).map(lambda x: x.double())


LAYERS = {
    "convolution": lambda: GraphConvolution(3, 4),
    "chebyshev": lambda: ChebyshevConvolution(3, 4, order=3),
    "attention": lambda: GraphAttention(3, 4, heads=2, edge_features=2),
    "mean attention": lambda: GraphAttention(3, 4, heads=2, join="mean"),
    "messages": lambda: MessagePassingLayer(3, 4, edge_features=2),
    "mean messages": lambda: MessagePassingLayer(3, 4, aggregate="mean"),
    "largest messages": lambda: MessagePassingLayer(3, 4, aggregate="max"),
    "isomorphism": lambda: MessagePassingLayer(3, 4, message="neighbour"),
    "isomorphism with edges": lambda: MessagePassingLayer(3, 4, edge_features=2, message="neighbour"),
    "mean isomorphism": lambda: MessagePassingLayer(3, 4, message="neighbour", aggregate="mean"),
}


def test_a_graph_convolution_is_its_dense_formula():
    graphs, layer = made(), GraphConvolution(3, 4).double()
    wanted = normalised_adjacency(graphs).dense() @ graphs.features @ layer.linear.weight.T + layer.bias
    torch.testing.assert_close(layer(graphs), wanted)


@pytest.mark.parametrize("order", [0, 1, 2, 5])
def test_a_chebyshev_convolution_is_its_spectral_filter(order):
    """U Tₖ(Λ − 1) Uᵀ X Wₖ, summed over k, with Tₖ(cos θ) = cos kθ."""
    graphs, layer = made(), ChebyshevConvolution(3, 4, order).double()
    values, vectors = torch.linalg.eigh(laplacian(graphs, "symmetric").dense())
    angle = (values - 1).clamp(-1, 1).acos()
    wanted = layer.bias + sum(
        vectors @ torch.diag((k * angle).cos()) @ vectors.T @ graphs.features @ weight.T
        for k, weight in enumerate(layer.linear.weight.chunk(order + 1))
    )
    torch.testing.assert_close(layer(graphs), wanted, rtol=1e-8, atol=1e-8)


def test_attention_is_a_softmax_over_neighbours_and_oneself():
    """A loop over nodes, edges and heads."""
    graphs, layer = made(2), GraphAttention(3, 4, heads=2, edge_features=2).double()
    z = (graphs.features @ layer.linear.weight.T).unflatten(1, (2, 4))
    extra = graphs.edge_features @ layer.at_edge.weight.T
    wanted = torch.zeros(len(z), 2, 4, dtype=torch.float64)
    for node in range(len(z)):
        into = [(int(s), e) for e, (s, t) in enumerate(graphs.edges.T.tolist()) if t == node] + [(node, None)]
        for head in range(2):
            scores = torch.stack(
                [
                    layer.at_target[head] @ z[node, head]
                    + layer.at_source[head] @ z[s, head]
                    + (0 if e is None else extra[e, head])
                    for s, e in into
                ]
            )
            q = leaky_relu(scores, 0.2).softmax(0)
            wanted[node, head] = sum(weight * z[s, head] for weight, (s, _) in zip(q, into, strict=True))
    torch.testing.assert_close(layer(graphs), wanted.flatten(1) + layer.bias)
    mean = GraphAttention(3, 4, heads=2, edge_features=2, join="mean").double()
    mean.load_state_dict(layer.state_dict() | {"bias": torch.zeros(4)})
    torch.testing.assert_close(mean(graphs), wanted.mean(1))


def test_attention_coefficients_sum_to_one_at_every_node():
    graphs, layer = made(2), GraphAttention(3, 4, heads=3, edge_features=2).double()
    q = layer.coefficients(graphs)
    assert bool((q >= 0).all())
    total = targets(graphs, loops=True).T @ q
    torch.testing.assert_close(total, torch.ones(len(graphs.features), 3, dtype=torch.float64))


@pytest.mark.parametrize("how", ["sum", "mean", "max"])
def test_messages_are_perceptrons_of_both_ends_and_the_edge(how):
    graphs, layer = made(2), MessagePassingLayer(3, 4, edge_features=2, aggregate=how).double()
    h, (source, target) = graphs.features, graphs.edges
    first = torch.cat([layer.to_source.weight, layer.to_target.weight, layer.of_edge.weight], 1)
    ends = torch.cat([h[source], h[target], graphs.edge_features], 1)
    messages = layer.sent((ends @ first.T + layer.to_target.bias).relu())
    arrived = torch.zeros(len(h), 4, dtype=torch.float64)
    for node in range(len(h)):
        own = messages[target == node]
        if len(own):
            arrived[node] = {"sum": own.sum(0), "mean": own.mean(0), "max": own.amax(0)}[how]
    both = torch.cat([layer.own.weight, layer.arrived.weight], 1)
    wanted = layer.updated((torch.cat([h, arrived], 1) @ both.T + layer.own.bias).relu())
    torch.testing.assert_close(layer(graphs), wanted)


def test_the_isomorphism_update_is_its_formula():
    graphs, layer = made(), MessagePassingLayer(3, 4, message="neighbour").double()
    layer.epsilon.data.fill_(0.3)
    total = 1.3 * graphs.features + adjacency(graphs).dense() @ graphs.features
    torch.testing.assert_close(layer(graphs), layer.updated(layer.own(total).relu()))


def test_what_neighbours_send_with_edge_features():
    graphs, layer = made(2), MessagePassingLayer(3, 4, edge_features=2, message="neighbour").double()
    sent = (sources(graphs) @ graphs.features + layer.of_edge(graphs.edge_features)).relu()
    total = graphs.features + targets(graphs).T @ sent
    torch.testing.assert_close(layer(graphs), layer.updated(layer.own(total).relu()))


@pytest.mark.parametrize("name", LAYERS)
def test_gradients_are_right(name):
    graphs, layer = made(2), LAYERS[name]().double()
    names = [name for name, _ in layer.named_parameters()]
    values = tuple(value.detach().clone().requires_grad_() for value in layer.parameters())
    torch.autograd.gradcheck(
        lambda *own: functional_call(layer, dict(zip(names, own, strict=True)), (graphs,)).square().sum(), values
    )


@pytest.mark.parametrize("name", LAYERS)
def test_layers_are_vectorised_over_parameters_on_new_graphs(name):
    layer = LAYERS[name]().double()
    own = dict(layer.named_parameters())
    many = {k: torch.stack([v.detach(), 2 * v.detach()]) for k, v in own.items()}

    def apart(i, graphs):
        return functional_call(layer, {k: v[i] for k, v in many.items()}, (graphs,))

    together = vmap(lambda p, graphs: functional_call(layer, p, (graphs,)), in_dims=(0, None))
    graphs = made(2)
    torch.testing.assert_close(together(many, graphs), torch.stack([apart(i, graphs) for i in range(2)]))
    fresh = graphs.map(lambda x: x.clone())
    derivative = jacrev(lambda p: functional_call(layer, p, (fresh,)))(own)
    again = jacrev(lambda p: functional_call(layer, p, (graphs,)))(own)
    torch.testing.assert_close(derivative, again)
    torch.testing.assert_close(layer(fresh), layer(graphs))


def test_sparse_and_dense_features_give_the_same():
    x = torch.zeros(300, 300)
    x[torch.arange(300), torch.randint(300, (300,))] = torch.randn(300)
    graphs, layer = graphs_of(x), NodeLinear(300, 4)
    torch.testing.assert_close(layer(graphs), layer(graphs, x))
    gradients = [torch.autograd.grad(layer(graphs, h).square().sum(), layer.weight)[0] for h in (None, x)]
    torch.testing.assert_close(*gradients)


def test_dropout_of_sparse_features_drops_and_scales_as_that_of_dense_ones(seed):
    """The fraction dropped of 6,000 is within 5 standard errors of p, but for 1 of 10⁶ seeds."""
    torch.manual_seed(seed)
    x = torch.zeros(300, 300)
    x[torch.arange(300), torch.arange(300)] = 1.0
    graphs, layer = graphs_of(x), NodeLinear(300, 1, dropout=0.25)
    wanted = layer.eval()(graphs)
    layer.train()
    share = torch.cat([layer(graphs) / wanted for _ in range(20)], 1)
    kept = share[share != 0]
    torch.testing.assert_close(kept, torch.full_like(kept, 1 / 0.75))
    assert abs(float((share == 0).double().mean()) - 0.25) < 5 * (0.25 * 0.75 / share.numel()) ** 0.5
    layer(graphs).sum().backward()
    assert float((layer.weight.grad == 0).double().mean()) > 0.1  # what was dropped sends no gradient
