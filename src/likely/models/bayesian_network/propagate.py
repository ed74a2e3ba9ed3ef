"""Messages in a clique tree, compiled: collect to the root, distribute from it.

    collect:      μ(s) = Σ_r φ(s, r),   φ(r | s) = φ(s, r) / μ(s),   parent ← parent · μ
    distribute:   p(s, r) = φ(r | s) p(s),   p(s) = Σ p(parent)

This is absorption in Hugin's way: a separator divides out what it sent before it multiplies in what it gets. Products
are scaled as they grow, with log Z kept aside. Where a number falls below what float64 tells from zero, the same row is
collected again in logarithms, so that no evidence is too unlikely or too long.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from .schedule import Schedule

__all__ = ["TINY", "absorb", "draw", "maximise"]

TINY = 1e-280
"""Below this a product counts as lost: it may have been rounded, or be zero where it should not."""


@njit(cache=True, error_model="numpy")
def absorb(
    plan: Schedule,
    potentials: np.ndarray,
    logs: np.ndarray,
    codes: np.ndarray,
    weights: np.ndarray,
    soft: np.ndarray,
    use: np.ndarray,
    marginals: np.ndarray,
    counts: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """log p(row) for each row of codes (−1: unknown), and what `collect` left of the last row.

    `soft` weighs the states of the variables in `use`. Two arrays of zeros are filled unless they are empty:
    `marginals` (rows, states) by p(variable | row), `counts` by Σ over rows of weight · p(family | row).
    """
    evidence = np.empty(len(codes))
    work = np.empty(len(potentials))
    message = np.empty(plan.rows.max())
    for row in range(len(codes)):
        evidence[row] = collect(plan, potentials, logs, codes[row], soft, use, work, message)
        if evidence[row] == -np.inf or len(marginals) + len(counts) == 0:
            continue
        distribute(plan, work, message)
        for variable in range(len(plan.home)):
            if len(marginals):
                read(plan, work, variable, marginals[row])
            if len(counts):
                first, begin = plan.start[plan.family_home[variable]], plan.family_start[variable]
                for entry in range(plan.family_start[variable + 1] - begin):
                    counts[plan.family[begin + entry]] += weights[row] * work[first + entry]
    return evidence, work


@njit(cache=True, error_model="numpy")
def maximise(
    plan: Schedule, logs: np.ndarray, codes: np.ndarray, soft: np.ndarray, use: np.ndarray
) -> tuple[float, np.ndarray]:
    """The most probable states of all variables with a row of codes, and their log probability."""
    work = logs.copy()
    message = np.empty(plan.rows.max())
    best = collect_logs(plan, work, codes[0], soft, use, message, True)
    entries = np.empty(len(plan.rows), np.int64)
    for clique in range(len(plan.rows)):
        row, width = row_of(plan, clique, entries)
        first = plan.start[clique] + row * width
        entries[clique] = row * width + np.argmax(work[first : first + width])
    return best, states_of(plan, entries)


@njit(cache=True, error_model="numpy")
def draw(plan: Schedule, conditional: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """States of all variables, one row for each row of uniform numbers (n, C), from the root down."""
    out = np.empty((len(uniform), len(plan.home)), np.int64)
    entries = np.empty(len(plan.rows), np.int64)
    for sample in range(len(uniform)):
        for clique in range(len(plan.rows)):
            row, width = row_of(plan, clique, entries)
            first = plan.start[clique] + row * width
            left = uniform[sample, clique] * conditional[first : first + width].sum()
            entries[clique] = row * width
            for place in range(width):
                if conditional[first + place] > 0:
                    entries[clique] = row * width + place  # rounding may leave a rest after the last possible one
                    left -= conditional[first + place]
                    if left < 0:
                        break
        out[sample] = states_of(plan, entries)
    return out


@njit(cache=True, error_model="numpy")
def collect(
    plan: Schedule,
    potentials: np.ndarray,
    logs: np.ndarray,
    codes: np.ndarray,
    soft: np.ndarray,
    use: np.ndarray,
    work: np.ndarray,
    message: np.ndarray,
) -> float:
    """log p(row); leaves φ(r | s) of every clique in `work`, with the root's own distribution as its one row."""
    work[:] = potentials
    lost = enter(plan, work, codes, soft, use)
    log_z = 0.0
    scale = np.ones(len(plan.rows))
    for clique in range(len(plan.rows) - 1, -1, -1):
        rows = plan.rows[clique]
        begin = plan.start[clique]
        width = (plan.start[clique + 1] - begin) // rows
        total = 0.0
        for row in range(rows):
            first = begin + row * width
            mass = 0.0
            for entry in range(first, first + width):
                mass += work[entry]
            message[row] = mass
            total += mass
            if mass > 0.0:
                inverse = 1.0 / mass
                for entry in range(first, first + width):
                    work[entry] *= inverse
        if lost or total < TINY:
            break
        log_z += math.log(total)
        if clique == 0:
            return log_z
        parent = plan.parent[clique]
        begin, links = plan.start[parent], plan.lift_start[clique]
        shrink = 1.0 / (total * scale[parent])
        log_z += math.log(scale[parent])
        for row in range(rows):
            message[row] *= shrink
        total = 0.0
        for entry in range(plan.start[parent + 1] - begin):
            before, factor = work[begin + entry], message[plan.lift[links + entry]]
            after = before * factor
            lost |= after < TINY and before > 0.0 and factor > 0.0
            work[begin + entry] = after
            total += after
        scale[parent] = total if total > 0.0 else 1.0
    work[:] = logs
    log_z = collect_logs(plan, work, codes, soft, use, message, False)
    for entry in range(len(work)):
        work[entry] = math.exp(work[entry])
    return log_z


@njit(cache=True, error_model="numpy")
def collect_logs(
    plan: Schedule,
    work: np.ndarray,
    codes: np.ndarray,
    soft: np.ndarray,
    use: np.ndarray,
    message: np.ndarray,
    maximum: bool,
) -> float:
    """The same in logarithms: log Σ exp of each row, or its maximum, is sent; the row keeps the difference."""
    enter_logs(plan, work, codes, soft, use)
    for clique in range(len(plan.rows) - 1, -1, -1):
        rows = plan.rows[clique]
        begin = plan.start[clique]
        width = (plan.start[clique + 1] - begin) // rows
        for row in range(rows):
            cells = work[begin + row * width : begin + (row + 1) * width]
            top = cells.max()
            if top > -np.inf:
                if not maximum:
                    mass = 0.0
                    for entry in range(width):
                        mass += math.exp(cells[entry] - top)
                    top += math.log(mass)
                for entry in range(width):
                    cells[entry] -= top
            message[row] = top
        if clique > 0:
            parent = plan.parent[clique]
            begin, links = plan.start[parent], plan.lift_start[clique]
            for entry in range(plan.start[parent + 1] - begin):
                work[begin + entry] += message[plan.lift[links + entry]]
    return message[0]


@njit(cache=True, error_model="numpy")
def distribute(plan: Schedule, work: np.ndarray, message: np.ndarray) -> None:
    """From φ(r | s) to p(s, r) in every clique."""
    for clique in range(1, len(plan.rows)):
        rows = plan.rows[clique]
        begin, links = plan.start[plan.parent[clique]], plan.lift_start[clique]
        message[:rows] = 0.0
        for entry in range(plan.lift_start[clique + 1] - links):
            message[plan.lift[links + entry]] += work[begin + entry]
        begin = plan.start[clique]
        width = (plan.start[clique + 1] - begin) // rows
        for row in range(rows):
            for entry in range(begin + row * width, begin + (row + 1) * width):
                work[entry] *= message[row]


@njit(cache=True, error_model="numpy")
def read(plan: Schedule, work: np.ndarray, variable: int, out: np.ndarray) -> None:
    """The distribution of one variable, summed from its clique and normalised once more against rounding."""
    clique, stride, size = plan.home[variable], plan.stride[variable], plan.size[variable]
    begin, end, first = plan.start[clique], plan.start[clique + 1], plan.state_start[variable]
    total = 0.0
    for block in range(begin, end, stride * size):
        for state in range(size):
            for entry in range(block + state * stride, block + (state + 1) * stride):
                out[first + state] += work[entry]
    for state in range(size):
        total += out[first + state]
    for state in range(size):
        out[first + state] /= total


@njit(cache=True, error_model="numpy")
def enter(plan: Schedule, work: np.ndarray, codes: np.ndarray, soft: np.ndarray, use: np.ndarray) -> bool:
    """Multiply the evidence into one clique of each variable; whether a product was lost."""
    lost = False
    for variable in range(len(plan.home)):
        known = codes[variable]
        if known < 0 and not use[variable]:
            continue
        clique, stride, size = plan.home[variable], plan.stride[variable], plan.size[variable]
        for block in range(plan.start[clique], plan.start[clique + 1], stride * size):
            for state in range(size):
                factor = soft[plan.state_start[variable] + state] if known < 0 or known == state else 0.0
                for entry in range(block + state * stride, block + (state + 1) * stride):
                    before = work[entry]
                    work[entry] = before * factor
                    lost |= work[entry] < TINY and before > 0.0 and factor > 0.0
    return lost


@njit(cache=True, error_model="numpy")
def enter_logs(plan: Schedule, work: np.ndarray, codes: np.ndarray, soft: np.ndarray, use: np.ndarray) -> None:
    """Add the logarithms of the evidence to one clique of each variable."""
    for variable in range(len(plan.home)):
        known = codes[variable]
        if known < 0 and not use[variable]:
            continue
        clique, stride, size = plan.home[variable], plan.stride[variable], plan.size[variable]
        for state in range(size):
            factor = soft[plan.state_start[variable] + state] if known < 0 or known == state else 0.0
            shift = math.log(factor) if factor > 0.0 else -np.inf
            for block in range(plan.start[clique], plan.start[clique + 1], stride * size):
                for entry in range(block + state * stride, block + (state + 1) * stride):
                    work[entry] += shift


@njit(cache=True, error_model="numpy")
def row_of(plan: Schedule, clique: int, entries: np.ndarray) -> tuple[np.int64, np.int64]:
    """The row of a clique that the chosen entry of its parent leads to, and the length of its rows."""
    width = (plan.start[clique + 1] - plan.start[clique]) // plan.rows[clique]
    row = np.int64(0) if clique == 0 else np.int64(plan.lift[plan.lift_start[clique] + entries[plan.parent[clique]]])
    return row, width


@njit(cache=True, error_model="numpy")
def states_of(plan: Schedule, entries: np.ndarray) -> np.ndarray:
    """The state of each variable in the chosen entries of the cliques."""
    states = np.empty(len(plan.home), np.int64)
    for variable in range(len(plan.home)):
        states[variable] = (entries[plan.home[variable]] // plan.stride[variable]) % plan.size[variable]
    return states
