"""`inference="auto"`: the exact method where there is one, then the convex one, else gradient training.

Networks are cross-fitted (see `training.cross_fit`). A table has eight of them, or four from 1,000 rows on, each
stopped by a fold that the others learn from, and an affine map beside them; their mixture answers. Sequences have five,
trained one by one, each stopped by its own tenth of the rows. Images and graphs, whose networks are dear, have one; a
few graphs with labels at their nodes have one with a penalty. The numbers were chosen on the tables of
`benchmarks/defaults.py`; those of sequences on training sentences of SST-2, and tried on digits read row by row, sums
of steps and WNUT-17.
"""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from ..data.rows import Rows
from ..data.sparse_rows import SparseRows
from ..optim import LBFGS, Adam, AdamW
from ..priors import Normal, Rates
from .linear.exact import Exact
from .linear.newton import Newton
from .posterior import Posterior
from .problem import Inference, Problem
from .training.cross_fit import _CrossFit
from .training.ensemble import Ensemble
from .training.map import MAP

__all__ = ["automatic"]

DENSE = 2_000
"""Parameters up to which Newton's dense steps beat first-order ones on a convex problem."""


FEW = 20
"""Rows below which none is held out."""
MEMBERS, FEWER, ONE = 8, 4, 1
"""Networks on a table: small ones have a higher variance, so they are averaged over more."""
FOLDS = 5
"""At most a fifth of the rows is held out by a member."""
SMALL, LARGE = 1_000, 50_000
"""Rows from which on a table has fewer of them, and above which it has one."""
BATCHES = ((1_000, 32), (4_000, 64), (16_000, 128))
"""Rows of a batch, for tables below so many rows."""
LARGEST = 256
"""Rows of a batch, for the others."""
STEPS, EPOCHS, OTHERS, LONGEST = 1_500, 30, 40, 200
"""Training takes so many steps at most, or epochs where these are more, on a table; images, sequences and graphs have
others, and no more than the last."""
WAIT, BEFORE = 150, 5
"""On a table it takes so many steps, and epochs, at least."""
RATE, WIDTH = 5e-3, 64
"""Of a network whose widest layer is that wide; wider ones take smaller steps."""
OF_SEQUENCES, SEVERAL = 5, 16_000
"""Networks on sequences, and how many of these there are from which on it is one."""
GRAPH_RATE = 0.01
"""Where few graphs are learned from at once, 200 times: what is usual for citation networks."""
GRAPH_DECAY = 5e-4
"""λ of a penalty λ/2 ‖θ‖² on their mean loss, where no prior says what weights are; usual there too."""
DECAY = 0.5
"""Of the weights, where no prior says what they are."""
HELD = 2_000
"""Rows of a fold, at most."""


class _Penalised(Inference):
    """`by` with the normal prior that is a penalty rate/2 ‖θ‖² on the mean of −log p over all targets."""

    needs: ClassVar[frozenset[str]] = MAP.needs
    descends: ClassVar[bool] = True

    by: MAP
    rate: float

    def fit(self, problem: Problem) -> Posterior:
        """The posterior of the problem with this prior."""
        deviation = (self.rate * max(1.0, problem.data.total_weight())) ** -0.5
        return self.by.fit(problem.with_(prior=Normal(deviation)))


def automatic(problem: Problem, *, mode: bool = False) -> Inference:
    """Exact for linear models with normal noise, Newton for others whose targets have an η each, else training.

    With `mode` one most probable θ is wanted, by MAP where it takes training.
    """
    description, rates = problem.description, list(problem.penalties.values())
    if not description.linear or any(rate is None for rate in rates):
        return MAP() if mode or description.linear else _for_network(problem)
    l1 = any(rate is not None and rate.l1 for rate in rates)
    wide = isinstance(problem.data.x, SparseRows) and description.size > DENSE  # whose moments would be dense
    if getattr(problem.objective, "least_squares", False) and not l1 and not wide:
        return Exact()
    if description.size <= DENSE and "eta" in problem.objective.offers:
        return Newton()
    return MAP() if l1 else MAP(LBFGS(), epochs=50, batch_size=None, tol=1e-4)


def _for_network(problem: Problem) -> Inference:
    """Cross-fitting with batches, steps and members by the number of rows, and a rate by the width."""
    rows, x = len(problem.data), problem.data.x
    told = any(penalty != Rates() for penalty in problem.penalties.values())
    if rows < FEW:  # one graph is a row, whose labels are those of its nodes
        if not isinstance(x, Rows) or x.kind != "graph":
            return MAP()
        return MAP(Adam(GRAPH_RATE)) if told else _Penalised(MAP(Adam(GRAPH_RATE)), GRAPH_DECAY)
    batch_size = next((size for limit, size in BATCHES if rows < limit), LARGEST)
    epoch = -(-rows // batch_size)
    if not (isinstance(x, Tensor) and x.ndim == 2) or problem.data.integer:
        steps = min(max(STEPS, OTHERS * epoch), LONGEST * epoch)
        one = _CrossFit(ONE, Adam(), batch_size, steps, min(rows // 10, HELD))
        if not _are_sequences(problem):
            return one
        one = one.replace(optimizer=Adam(_rate_of_sequences(problem)))
        return Ensemble(OF_SEQUENCES, by=one) if rows < SEVERAL else one
    widest = max((shape[0] for shape in problem.description.shapes.values() if len(shape) > 1), default=WIDTH)
    rate = RATE * min(1.0, (WIDTH / widest) ** 0.5)
    members = MEMBERS if rows < SMALL else FEWER if rows <= LARGE else ONE
    optimizer = Adam(rate) if told else AdamW(rate, weight_decay=DECAY)
    steps, wait = max(STEPS, EPOCHS * epoch), max(WAIT, BEFORE * epoch)
    held = min(rows // max(members, FOLDS), HELD)
    return _CrossFit(members, optimizer, batch_size, steps, held, wait, affine=True)


def _are_sequences(problem: Problem) -> bool:
    """Whether rows are tokens or steps: sequences of any lengths, or arrays (n, steps, features)."""
    x = problem.data.x
    return problem.data.integer or (x.kind == "sequence" if isinstance(x, Rows) else x.ndim == 3)


def _rate_of_sequences(problem: Problem) -> float:
    """By the most numbers that a unit reads: the gates of an LSTM its 64, a Transformer's network its 256."""
    most = max((shape[-1] for shape in problem.description.shapes.values() if len(shape) > 1), default=WIDTH)
    return RATE * min(1.0, (WIDTH / most) ** 0.5)
