"""Long compiled calls: a signal is heard while they run, and blocks of rows give what all rows at once give."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from likely.core import threads
from likely.core.interrupt import LONG, blocks, interruptible
from likely.inference import CollapsedGibbs
from likely.models import LatentDirichlet, WordVectors
from likely.models.language import glove, negative_sampling
from likely.models.topics import ascent, chain


@pytest.fixture
def heard() -> Iterator[None]:
    """Interrupts are heard, also where the tests run in the background of a shell that ignores them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heard")
def test_interrupt_is_raised_while_the_call_still_runs() -> None:
    begun, over, ended = threading.Event(), threading.Event(), threading.Event()

    def call() -> None:
        begun.set()
        over.wait()
        ended.set()

    def interrupt() -> None:
        begun.wait()
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        interruptible(LONG, call)
    assert not ended.is_set()
    over.set()
    assert ended.wait(60)


def test_a_wrapped_call_is_as_a_plain_call() -> None:
    with pytest.raises(ZeroDivisionError):
        interruptible(LONG, lambda: 1 / 0)
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        interruptible(LONG, np.divide, np.ones(1), np.zeros(1))
    with torch.no_grad():
        assert interruptible(LONG, torch.is_grad_enabled) is False
    assert interruptible(LONG, torch.is_grad_enabled) is True


def test_short_calls_and_calls_outside_the_main_thread_stay_where_they_are() -> None:
    here = threading.get_ident()
    assert interruptible(0.5 * LONG, threading.get_ident) == here
    assert interruptible(LONG, threading.get_ident) != here
    seen: list[bool] = []

    def inside() -> None:
        seen.append(interruptible(LONG, threading.get_ident) == threading.get_ident())

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    assert seen == [True]


def test_blocks_cover_all_items_once_and_are_no_larger_than_asked() -> None:
    costs = np.random.default_rng(0).integers(0, 9, 200)
    parts = list(blocks(costs, 20))
    assert [place for first, last in parts for place in range(first, last)] == list(range(200))
    assert all(costs[first:last].sum() <= 20 or last == first + 1 for first, last in parts)
    assert list(blocks(np.zeros(0), 1)) == []


COUNTS = np.random.default_rng(1).poisson(1.0, (12, 9))
TEXT = [" ".join(np.random.default_rng(i).choice(list("abcdefg"), 9)) for i in range(12)]


@pytest.mark.parametrize(
    ("module", "model", "X", "learned"),
    [
        (chain, LatentDirichlet(2, inference=CollapsedGibbs(12, 6), random_state=0), COUNTS, "components_"),
        (ascent, LatentDirichlet(2, random_state=0), COUNTS, "components_"),
        (negative_sampling, WordVectors(width=4, min_count=1, epochs=2, random_state=0), TEXT, "vectors_"),
        (
            negative_sampling,
            WordVectors(width=4, min_count=1, epochs=2, objective="cbow", random_state=0),
            TEXT,
            "vectors_",
        ),
        (glove, WordVectors(width=4, min_count=1, epochs=2, objective="glove", random_state=0), TEXT, "vectors_"),
    ],
    ids=["gibbs", "variational", "skip-gram", "cbow", "glove"],
)
def test_blocks_change_nothing(module: Any, model: Any, X: Any, learned: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = getattr(model.fit(X), learned)
    monkeypatch.setattr(module, "BLOCK", 7)
    np.testing.assert_allclose(getattr(model.fit(X), learned), whole, rtol=1e-6)


@pytest.mark.usefixtures("heard")
def test_an_interrupt_does_not_wait_for_the_other_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, over = threading.Event(), threading.Event()
    monkeypatch.setattr(threads, "available_threads", lambda: 2)

    def work(rows: slice) -> None:
        begun.set()
        over.wait()

    def interrupt() -> None:
        begun.wait()
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        threads.by_threads(work, slice(0, 2 * threads.LEAST))
    assert not over.is_set()
    over.set()
