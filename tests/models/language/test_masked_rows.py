from __future__ import annotations

import dataclasses

import numpy as np
import torch

from likely.core.random import drawing
from likely.data.text import Words
from likely.models.language.masked_rows import MaskedWindows, SentencePairs, shortened
from likely.models.language.texts import joined

DOCUMENTS = [["a b c", "d e", "f"], ["g h i j"], ["k l", "m n o"]]
SENTENCES = [sentence for own in DOCUMENTS for sentence in own]
VOCABULARY = Words().fit(SENTENCES)
SIZE = VOCABULARY.size


def windows(context=3):
    values, offsets = joined(VOCABULARY, SENTENCES, False)
    rows = MaskedWindows.of(torch.from_numpy(values), torch.from_numpy(offsets), context)
    return dataclasses.replace(rows, fraction=0.3, size=SIZE)


def pairs(context=20, weight=None):
    values, offsets = joined(VOCABULARY, SENTENCES, False)
    document = torch.tensor([0, 0, 0, 1, 2, 2])
    parts = torch.from_numpy(values), torch.from_numpy(offsets), document
    return SentencePairs.of(*parts, context, 0.2, SIZE, weight)


def given_back(batch):
    """The rows before anything was hidden."""
    places, wanted = batch.condition.unbind(-2)
    words = wanted >= 0
    x = batch.x.clone()
    for row in range(len(x)):
        x[row, places[row][words[row]]] = wanted[row][words[row]]
    return x


def test_in_order_every_token_is_in_one_window():
    rows = windows()
    x = given_back(rows.batch(slice(0, len(rows))))
    assert sorted(x[x >= 0].tolist()) == sorted(np.concatenate([VOCABULARY.encode(text) for text in SENTENCES]))
    assert rows.total_weight() == float((x >= 0).sum())


def test_training_hides_anew_and_validation_the_same():
    rows = windows(4)
    index = torch.arange(len(rows))
    with drawing(0):
        first, second = rows.batch(index), rows.batch(index)
        assert not torch.equal(first.condition, second.condition)
        assert torch.equal(rows.batch(slice(0, 4)).condition, rows.batch(slice(0, 4)).condition)


def test_rows_of_similar_length_share_a_batch():
    values = np.concatenate([[SIZE, *[0] * (1 + number % 9)] for number in range(90)])
    offsets = np.cumsum([0, *(2 + number % 9 for number in range(90))])
    rows = MaskedWindows.of(torch.from_numpy(values), torch.from_numpy(offsets), 9)
    order = rows.order(torch.Generator().manual_seed(0), 10)
    assert sorted(order.tolist()) == list(range(90))
    lengths = (rows.last - rows.starts)[order].view(9, 10)
    assert torch.equal(lengths.amax(1), lengths.amin(1))


def test_a_sentence_stands_before_the_next_one_or_any_other(seed):
    """Of 400 draws, half are swapped: within 5 standard errors, a false alarm in a million."""
    rows, answers = pairs(), []
    with drawing(seed):
        for _ in range(100):
            batch = rows.batch(torch.arange(6))
            answer = batch.condition[:, 1, -1]
            assert answer[[2, 3, 5]].tolist() == [-1, -1, -1]  # the last of each document stands alone
            x = given_back(batch._replace(condition=batch.condition[..., :-1]))
            for row in (0, 1, 4):
                boundary = int(batch.condition[row, 0, -1])
                assert x[row, boundary] == SIZE + 1
                tokens = x[row][x[row] >= 0].tolist()
                assert tokens[:boundary] == VOCABULARY.encode(SENTENCES[row]).tolist()
                follows = tokens[boundary + 1 :] == VOCABULARY.encode(SENTENCES[row + 1]).tolist()
                assert follows == bool(answer[row])
                answers.append(follows)
    assert abs(np.mean(answers) - 0.5) < 5 * 0.5 / np.sqrt(len(answers))


def test_pairs_fit_the_context():
    one, two = torch.meshgrid(torch.arange(12), torch.arange(12), indexing="ij")
    kept = shortened(one.flatten(), two.flatten(), torch.ones(144, dtype=torch.bool), 9)
    assert (sum(kept) <= 8).all()
    cut = (one.flatten() > kept[0]) | (two.flatten() > kept[1])
    assert (sum(kept)[cut] == 8).all()  # nothing is cut for nothing
    assert pairs(5).batch(torch.arange(6)).x.shape[1] <= 5


def test_weights_are_of_documents():
    rows = pairs(weight=torch.tensor([2.0, 0.0, 1.0]))
    assert rows.batch(torch.arange(6)).weight.ravel().tolist() == [2.0, 2.0, 2.0, 0.0, 1.0, 1.0]
    assert rows.total_weight() == 2.0 * 6 + 0.0 + 5
    assert len(rows.subset(torch.tensor([4, 0]))) == 2
