"""What a compiled loop indexes is checked where it is called."""

from __future__ import annotations

import numpy as np
import pytest

from likely.core.doors import check_indices, check_offsets, check_sizes
from likely.core.errors import DataError
from likely.data.rows import Ragged
from likely.models.linear_gaussian.kalman.recursion import (
    System,
    observe,
    run_filter,
    simulate,
)
from likely.models.markov import (
    filter_states,
    forward_backward,
    sample_paths,
    sample_states,
    viterbi,
)
from likely.models.topics.ascent import infer
from likely.models.topics.corpus import Corpus


def test_sizes_that_agree_are_given_by_name():
    arrays = {"a": (np.ones((2, 3)), "n d"), "b": (np.ones(3), "d")}
    assert check_sizes("loop", arrays) == {"n": 2, "d": 3}


@pytest.mark.parametrize("offsets", [[0, 3], [1, 2], [0, 2, 1, 2], [[0, 2]], [0.0, 2.0], []])
def test_offsets_must_cover_the_rows(offsets):
    check_offsets("loop", np.array([0, 1, 2]), 2)
    with pytest.raises(DataError, match="loop needs offsets that rise from 0 to 2, the number of rows"):
        check_offsets("loop", np.array(offsets), 2)


@pytest.mark.parametrize("indices", [[-1, 0], [0, 3]])
def test_indices_must_be_in_range(indices):
    check_indices("loop", "words", np.array([0, 2]), 3)
    check_indices("loop", "codes", np.array([-1, 2]), 3, least=-1)
    with pytest.raises(DataError, match="loop needs words from 0 to 2"):
        check_indices("loop", "words", np.array(indices), 3)
    with pytest.raises(DataError, match="needs words that are integers; found float64"):
        check_indices("loop", "words", np.array([0.5]), 3)


# --- the doors ------------------------------------------------------------------------------------------------------
INITIAL, TRANSITION, EMISSION = np.full(2, 0.5), np.full((2, 2), 0.5), np.zeros((3, 2))
WHOLE = np.array([0, 3])


@pytest.mark.parametrize("loop", [viterbi, forward_backward, filter_states])
@pytest.mark.parametrize(
    ("initial", "transition", "emission", "offsets"),
    [
        (np.full(20_000, 1 / 20_000), TRANSITION, EMISSION, WHOLE),
        (INITIAL, TRANSITION[:, :1], EMISSION, WHOLE),
        (INITIAL, TRANSITION, EMISSION[:, :1], WHOLE),
        (INITIAL, TRANSITION, EMISSION, np.array([0, 9])),
    ],
    ids=["initial", "transition", "emission", "offsets"],
)
def test_recursions_over_states_refuse_what_does_not_fit(loop, initial, transition, emission, offsets):
    loop(INITIAL, TRANSITION, EMISSION, WHOLE)
    with pytest.raises(DataError, match=f"{loop.__name__} needs"):
        loop(initial, transition, emission, offsets)


def test_draws_of_states_refuse_what_does_not_fit():
    with pytest.raises(DataError, match="sample_states needs initial"):
        sample_states(INITIAL, TRANSITION[:, :1], np.full((1, 4), 0.5))
    with pytest.raises(DataError, match="a state that can follow"):
        sample_states(INITIAL, np.array([[0.0, 0.0], [0.5, 0.5]]), np.full((1, 4), 0.5))
    with pytest.raises(DataError, match="sample_paths needs"):
        sample_paths(np.full((3, 2), 0.5), TRANSITION, np.array([0, 4]), np.full(3, 0.5))


def test_the_kalman_filter_refuses_matrices_of_other_sizes():
    one, zero = np.eye(1), np.zeros(1)
    data = observe(Ragged.from_numpy(np.ones((3, 1)), np.array([0, 3])))
    system = System(one, zero, one, one, zero, one, zero, one)
    run_filter(data, system)
    with pytest.raises(DataError, match=r"KalmanFilter needs transition \(k, k\)"):
        run_filter(data, system._replace(transition=np.ones((50, 1))))
    with pytest.raises(DataError, match="rise from 0 to 3"):
        run_filter(data._replace(rows=Ragged.from_numpy(data.x, np.array([0, 4]))), system)
    with pytest.raises(DataError, match="simulate needs"):
        simulate(np.ones((50, 1)), zero, zero, np.zeros((2, 1)))


def test_topics_refuse_words_and_priors_that_are_not_theirs():
    corpus = Corpus.of(np.array([0, 2]), np.array([0, 9], np.int32), np.ones(2), 10)
    with pytest.raises(DataError, match="infer needs words from 0 to 4; found 0 to 9"):
        infer(corpus, np.ones((2, 5)), np.ones(2), 5, 1e-3)
    with pytest.raises(DataError, match=r"infer needs weights \(V, K\) and prior \(K\)"):
        infer(corpus, np.ones((2, 10)), np.ones(200), 5, 1e-3)
