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
    net, graphs = GCN((4,)).build((3,), 2), Graphs.of([graph])
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
    """Cora with 140 known labels: 79 % of the test papers and more; without the citations it is below 65 %."""
    with np.load(shared_data / "cora.npz", allow_pickle=False) as file:
        x = np.zeros(tuple(file["x_shape"]), np.float32)
        words = np.diff(file["x_indptr"])
        x[np.repeat(np.arange(len(x)), words), file["x_indices"]] = np.repeat(1 / np.maximum(words, 1), words)
        y, test, edges = file["y"].astype(int), file["test_idx"], file["edges"]
        known = np.full_like(y, -1)
        known[file["train_idx"]] = y[file["train_idx"]]
    decay = priors.PerLayer({"blocks.0.*": priors.Normal((140 * 5e-4) ** -0.5)})
    scores = []
    for own in (edges, []):
        graph = Graph(x, own).undirected()
        model = Classifier(
            network=GCN((16,), dropout=0.5),
            prior=decay,
            inference=MAP(Adam(0.01), epochs=150),
            random_state=0,
            missing_label=-1,
        )
        scores.append((model.fit(graph, known).predict(graph)[test] == y[test]).mean())
    assert scores[0] > 0.79
    assert scores[1] < 0.65
