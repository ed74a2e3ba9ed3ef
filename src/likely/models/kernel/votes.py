"""Several classes from pairs of them: each pair has a vote, and what wins most pairs is the answer.

    decision of k  =  votes of k + c / (3(|c| + 1)),      c = Σⱼ f(k against j)

The sum c says how clear the votes were; it counts for less than half a vote, so that it decides among equals:
scikit-learn's one-versus-rest.
"""

from __future__ import annotations

from itertools import combinations

import torch
from torch import Tensor

__all__ = ["against", "decision"]


def against(pairs: Tensor, classes: int) -> Tensor:
    """f(k against j) of all classes, (n, k, j), from those of pairs (n, pairs), which are positive for the later one.

    >>> against(torch.tensor([[2.0]]), 2)
    tensor([[[ 0., -2.],
             [ 2.,  0.]]])
    """
    signs = pairs.new_zeros(pairs.shape[1], classes, classes)
    for pair, (first, later) in enumerate(combinations(range(classes), 2)):
        signs[pair, later, first], signs[pair, first, later] = 1.0, -1.0
    return torch.einsum("np,pkj->nkj", pairs, signs)


def decision(pairs: Tensor, classes: int) -> Tensor:
    """The votes of each class, and how clear they were, (n, classes). A pair at 0 votes for its first class.

    >>> decision(torch.tensor([[1.0, 1.0, -2.0]]), 3).round(decimals=4)  # 1 beats 0, 2 beats 0, 1 beats 2
    tensor([[-0.2222,  2.2500,  0.8333]])
    """
    sums, first = against(pairs, classes), torch.ones(classes, classes).triu(1).bool()
    votes = torch.where(first, sums >= 0, sums > 0).to(pairs).sum(2)
    clear = sums.sum(2)
    return votes + clear / (3 * (clear.abs() + 1))
