"""The graph convolutional network: its two-layer form, its size, and papers classified by who cites whom."""

from __future__ import annotations

import numpy as np
import torch

from likely import Classifier, priors
from likely.data.graph import Graph, Graphs
from likely.inference import MAP
from likely.networks import GCN
from likely.networks.layers.graph import normalised_adjacency
from likely.optim import Adam


def test_two_layers_are_the_formula():
    """η = Ā relu(Ā X W₀ + b₀) W₁ + b₁."""
    graph = Graph(torch.randn(5, 3), [[0, 1, 2, 3, 0], [1, 2, 3, 4, 4]]).undirected()
    net, graphs = GCN((4,), dropout=0.0).build((3,), 2), Graphs.of([graph])
    for bias in (net.blocks[0].layer.bias, net.last.bias):
        torch.nn.init.normal_(bias)
    a, first, second = normalised_adjacency(graphs).dense(), net.blocks[0].layer, net.last
    hidden = (a @ graph.features @ first.linear.weight.T + first.bias).relu()
    torch.testing.assert_close(net(graphs), a @ hidden @ second.linear.weight.T + second.bias)


def test_it_has_a_weight_for_each_pair_of_units_and_a_bias_for_each_unit():
    def size(spec):
        return sum(value.numel() for value in spec.build((3,), 2).parameters())

    assert size(GCN((10, 20))) == (3 * 10 + 10) + (10 * 20 + 20) + (20 * 2 + 2)
    assert size(GCN((10, 20), residual="add")) == size(GCN((10, 20))) + 3 * 10 + 10 * 20
    assert size(GCN((10, 20), norm="batch")) == size(GCN((10, 20))) + 2 * (10 + 20)
    assert size(GCN((10, 20), residual="dense")) == (3 * 10 + 10) + (13 * 20 + 20) + (33 * 2 + 2)


def test_citations_tell_the_subject_of_a_paper(shared_data):
    """Cora with 140 known labels, at its defaults: 79 % of the test papers and more; without citations below 65 %."""
    with np.load(shared_data / "cora.npz", allow_pickle=False) as file:
        x = np.zeros(tuple(file["x_shape"]), np.float32)
        words = np.diff(file["x_indptr"])
        x[np.repeat(np.arange(len(x)), words), file["x_indices"]] = np.repeat(1 / np.maximum(words, 1), words)
        y, test, edges = file["y"].astype(int), file["test_idx"], file["edges"]
        known = np.full_like(y, -1)
        known[file["train_idx"]] = y[file["train_idx"]]
    scores = []
    for own in (edges, []):
        graph = Graph(x, own).undirected()
        model = Classifier(network=GCN(), random_state=0, missing_label=-1)
        scores.append((model.fit(graph, known).predict(graph)[test] == y[test]).mean())
    assert scores[0] > 0.79
    assert scores[1] < 0.65


def test_by_default_nodes_have_dropout_and_a_penalty_on_the_weights():
    assert GCN().dropped == 0.5
    assert GCN(level="graph").dropped == 0.0
    assert GCN(dropout=0.2).dropped == 0.2
    ring = Graph(np.eye(6), [[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0]]).undirected()
    y = [0, -1, -1, 1, -1, -1]
    told = {"prior": priors.Normal((2 * 5e-4) ** -0.5), "inference": MAP(Adam(0.01))}  # of two labels
    models = [Classifier(network=GCN((4,)), random_state=0, missing_label=-1, **own).fit(ring, y) for own in ({}, told)]
    weights = [torch.cat([value.flatten() for value in model.posterior_.parameters.values()]) for model in models]
    torch.testing.assert_close(*weights)
