"""Matrices of graphs, and sums, means and maxima over their edges and nodes. A is the adjacency, D its degrees.

    A[t, s] = number of edges s → t,    Ā = D^(-1/2) (A + I) D^(-1/2)  with the degrees of A + I
    L = D − A,    symmetric D^(-1/2) L D^(-1/2),    random walk D^(-1) L        (0 where a node has no edge)

Products with them send along edges: (Ah)ₜ = Σ hₛ over edges s → t. Each matrix is made once for its graphs, which keep
it. `sources @ h` and `targets @ h` are h at both ends of each edge; `targets.T @ m` adds up messages at their targets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor

from ...core.errors import SpecError
from ...data.graph import Graphs
from ...data.rows import Inputs, Rows
from ...data.sparse import Selection, SparseMatrix

__all__ = [
    "AGGREGATES",
    "LAPLACIANS",
    "adjacency",
    "aggregate",
    "graphs_of",
    "laplacian",
    "mostly_zero",
    "normalised_adjacency",
    "owners",
    "readout",
    "segment_softmax",
    "sources",
    "sparse_features",
    "targets",
]

Entries = tuple[Tensor, Tensor, Tensor]
Aggregate = Literal["sum", "mean", "max"]
LaplacianKind = Literal["combinatorial", "symmetric", "random_walk"]

AGGREGATES = ("sum", "mean", "max")
LAPLACIANS = ("combinatorial", "symmetric", "random_walk")

LARGE = 1 << 16
"""Numbers that node features need to have before it is worth looking how many of them are 0."""
SPARSE = 0.1
"""The fraction of features that are not 0 below which a sparse product is faster."""


def graphs_of(x: Inputs) -> Graphs:
    """Graphs as they are; the rows of a tensor (n, d) as n graphs of one node, without edges.

    >>> graphs = graphs_of(torch.zeros(5, 3))
    >>> len(graphs), graphs.edges.shape
    (5, torch.Size([2, 0]))
    """
    if isinstance(x, Graphs):
        return x
    if isinstance(x, Rows):
        raise ValueError(f"it takes graphs, and these are {x.kind}s")
    if x.ndim != 2:
        raise ValueError(f"it takes graphs, or nodes without edges (n, features); found shape {tuple(x.shape)}")
    nodes = torch.arange(len(x) + 1, device=x.device)
    return Graphs(x, nodes.new_empty(2, 0), nodes, torch.zeros_like(nodes))


# --- matrices -----------------------------------------------------------------------------------------------------
def adjacency(graphs: Graphs) -> SparseMatrix:
    """A, with A[t, s] the number of edges from s to t.

    >>> from likely.data.graph import Graph
    >>> path = Graphs.of([Graph(torch.ones(3, 1), [[0, 1, 1, 2], [1, 0, 2, 1]])])
    >>> adjacency(path).dense().tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
    """

    edges, dtype = graphs.edges, graphs.dtype

    def entries() -> Entries:
        source, target = edges
        return target, source, torch.ones(len(source), dtype=dtype, device=edges.device)

    return _square("adjacency", graphs, entries)


def normalised_adjacency(graphs: Graphs) -> SparseMatrix:
    """Ā = D^(-1/2) (A + I) D^(-1/2), with d the number of edges into a node, and 1 for itself.

    >>> from likely.data.graph import Graph
    >>> pair = Graphs.of([Graph(torch.ones(2, 1), [[0, 1], [1, 0]])])
    >>> normalised_adjacency(pair).dense()
    tensor([[0.5000, 0.5000],
            [0.5000, 0.5000]])
    """

    edges, nodes, dtype = graphs.edges, len(graphs.features), graphs.dtype

    def entries() -> Entries:
        source, target = _with_loops(edges, nodes)
        scale = torch.bincount(target, minlength=nodes).to(dtype).rsqrt()
        return target, source, scale[target] * scale[source]

    return _square("normalised adjacency", graphs, entries)


def laplacian(graphs: Graphs, kind: LaplacianKind = "combinatorial", shift: float = 0.0) -> SparseMatrix:
    """L = D − A; "symmetric" D^(-1/2) L D^(-1/2); "random_walk" D^(-1) L. With `shift`, that much times I is added.

    A node without edges has a row of 0.

    >>> from likely.data.graph import Graph
    >>> path = Graphs.of([Graph(torch.ones(3, 1), [[0, 1, 1, 2], [1, 0, 2, 1]])])
    >>> laplacian(path).dense().tolist()
    [[1.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 1.0]]
    """
    if kind not in LAPLACIANS:
        raise SpecError(f"Unknown Laplacian {kind!r}; known: {', '.join(LAPLACIANS)}.")
    edges, count, dtype = graphs.edges, len(graphs.features), graphs.dtype

    def entries() -> Entries:
        source, target = edges
        nodes = torch.arange(count, device=edges.device)
        degree = torch.bincount(target, minlength=count).to(dtype)
        left = right = torch.ones_like(degree)
        if kind == "symmetric":
            left = right = _power(degree, -0.5)
        elif kind == "random_walk":
            left = _power(degree, -1.0)
        values = torch.cat([left * degree * right + shift, -left[target] * right[source]])
        return torch.cat([nodes, target]), torch.cat([nodes, source]), values

    return _square(("laplacian", kind, shift), graphs, entries)


def sources(graphs: Graphs, loops: bool = False) -> Selection:
    """The matrix that gives each edge what its first node has. With `loops`, an edge from each node to itself follows.

    >>> from likely.data.graph import Graph
    >>> pair = Graphs.of([Graph([[5.0], [7.0]], [[0, 1, 1], [1, 0, 1]])])
    >>> (sources(pair) @ pair.features).ravel().tolist()
    [5.0, 7.0, 7.0]
    """
    return _ends("sources", 0, graphs, loops)


def targets(graphs: Graphs, loops: bool = False) -> Selection:
    """The matrix that gives each edge what its second node has; its transposed adds up messages at their targets.

    >>> from likely.data.graph import Graph
    >>> pair = Graphs.of([Graph([[5.0], [7.0]], [[0, 1, 1], [1, 0, 1]])])
    >>> (targets(pair).T @ (sources(pair) @ pair.features)).ravel().tolist()
    [7.0, 12.0]
    """
    return _ends("targets", 1, graphs, loops)


def owners(graphs: Graphs) -> Selection:
    """The matrix that gives each node what its graph has.

    >>> graphs = graphs_of(torch.zeros(2, 1))
    >>> owners(graphs).dense().tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    offsets, dtype = graphs.offsets, graphs.dtype
    rows, width = len(graphs.features), len(graphs)

    def owner() -> Tensor:
        return torch.repeat_interleave(torch.arange(width, device=offsets.device), offsets.diff())

    return graphs.kept("owners", lambda _: Selection(owner, rows, width, dtype))


def sparse_features(graphs: Graphs) -> SparseMatrix | None:
    """The node features X without their zeros, if they are many and most are 0; None if not.

    >>> sparse_features(graphs_of(torch.ones(5, 3)))
    """
    x = graphs.features
    if x.numel() < LARGE or x.requires_grad:
        return None
    if graphs.kept("is sparse", lambda g: mostly_zero(g.features), of_features=True):
        return graphs.kept("features", lambda g: SparseMatrix.from_dense(g.features), of_features=True)
    return None


def mostly_zero(features: Tensor) -> bool:
    """Whether there are many numbers and most are 0, so that a sparse product is faster than a dense one.

    >>> mostly_zero(torch.zeros(5, 3)), mostly_zero(torch.eye(1000))
    (False, True)
    """
    return features.numel() >= LARGE and int(features.count_nonzero()) < SPARSE * features.numel()


# --- sums, means, maxima ------------------------------------------------------------------------------------------
def aggregate(values: Tensor, at: Selection, how: Aggregate) -> Tensor:
    """Σ, mean or maximum of the values (rows, d) that belong to each of `at`'s columns: (columns, d); 0 for none.

    >>> at = Selection(lambda: torch.tensor([0, 0, 2]), 3, 3)
    >>> values = torch.tensor([[1.0], [5.0], [-2.0]])
    >>> {how: aggregate(values, at, how).ravel().tolist() for how in ("sum", "mean", "max")}
    {'sum': [6.0, 0.0, -2.0], 'mean': [3.0, 0.0, -2.0], 'max': [5.0, 0.0, -2.0]}
    """
    if how == "max":
        index = at.index.unsqueeze(1).expand(-1, values.shape[1])
        return values.new_zeros(at.shape[1], values.shape[1]).scatter_reduce(
            0, index, values, "amax", include_self=False
        )
    total = at.T @ values
    return total if how == "sum" else total / (at.T @ values.new_ones(at.shape[0], 1)).clamp_min(1)


def readout(h: Tensor, graphs: Graphs, how: Aggregate) -> Tensor:
    """Σ, mean or maximum over the nodes of each graph: (nodes, d) → (graphs, d).

    >>> readout(torch.tensor([[1.0], [2.0]]), graphs_of(torch.zeros(2, 1)), "sum").tolist()
    [[1.0], [2.0]]
    """
    return aggregate(h, owners(graphs), how)


def segment_softmax(scores: Tensor, at: Selection) -> Tensor:
    """exp(sₑ) / Σ exp(sₑ') over the e' that belong to the same column of `at`: scores (rows, d) → (rows, d).

    >>> at = Selection(lambda: torch.tensor([0, 0, 2]), 3, 3)
    >>> segment_softmax(torch.zeros(3, 1), at).ravel().tolist()
    [0.5, 0.5, 1.0]
    """
    weight = torch.exp(scores - at @ at.largest(scores))
    return weight / (at @ (at.T @ weight))


# --- helpers ------------------------------------------------------------------------------------------------------
def _square(name: object, graphs: Graphs, entries: Callable[[], Entries]) -> SparseMatrix:
    """What is kept holds edges and numbers, never the graphs that keep it, so that both go together."""
    nodes = len(graphs.features)
    return graphs.kept(name, lambda _: SparseMatrix.of(entries, (nodes, nodes)))


def _ends(name: str, row: int, graphs: Graphs, loops: bool) -> Selection:
    edges, nodes, dtype = graphs.edges, len(graphs.features), graphs.dtype
    rows = edges.shape[1] + (nodes if loops else 0)

    def index() -> Tensor:
        return (_with_loops(edges, nodes) if loops else edges)[row]

    return graphs.kept((name, loops), lambda _: Selection(index, rows, nodes, dtype))


def _with_loops(edges: Tensor, nodes: int) -> Tensor:
    return torch.cat([edges, torch.arange(nodes, device=edges.device).expand(2, -1)], 1)


def _power(degree: Tensor, exponent: float) -> Tensor:
    """A power of the degrees, and 0 where they are 0."""
    return torch.where(degree > 0, degree.clamp_min(1) ** exponent, 0.0)
