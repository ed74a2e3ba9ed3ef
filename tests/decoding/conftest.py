from __future__ import annotations

import itertools

import pytest
import torch

V, LONGEST = 3, 6


class Table:
    """A model of sequences over V tokens whose every beginning has its own distribution of what comes next."""

    def __init__(self, seed, rows=4):
        random = torch.Generator().manual_seed(seed)
        self.first = torch.zeros(rows, dtype=torch.long)
        logits = 2 * torch.randn(rows, V ** (LONGEST + 1), V, generator=random, dtype=torch.float64)
        self.log_probs = logits.log_softmax(-1)
        self.calls = 0

    def start(self):
        """Rows of the table, the number of a beginning, and that nothing was taken yet."""
        return (torch.arange(len(self.first)), torch.ones_like(self.first) * -1)

    def step(self, state, tokens):
        self.calls += 1
        row, code = state
        code = torch.where(code < 0, 0, code * V + tokens + 1)
        return self.log_probs[row, code], (row, code)

    def score(self, row, tokens, skip=0):
        """Σ log p of a sequence, after the first few tokens."""
        code, total = 0, 0.0
        for place, token in enumerate(tokens):
            if place >= skip:
                total += float(self.log_probs[row, code, token])
            code = code * V + token + 1
        return total

    def best(self, row, length, end=None, prompt=(), penalty=0.0):
        """The best sequence, by asking for each."""
        every = set()
        for own in itertools.product(range(V), repeat=length):
            stop = own.index(end) + 1 if end in own else length
            every.add(own[:stop])
        whole = [(*prompt, *own) for own in every]
        return max(whole, key=lambda s: self.score(row, s, len(prompt)) / (len(s) - len(prompt)) ** penalty)


@pytest.fixture
def table(seed):
    return Table(seed)
