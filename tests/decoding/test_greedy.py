from __future__ import annotations

from likely.decoding import Greedy


def test_each_token_is_the_most_probable_one(table):
    decoded = Greedy().decode(table.step, table.start(), table.first, 4)
    for row, tokens in enumerate(decoded.tokens.tolist()):
        code = 0
        for token in tokens:
            assert token == int(table.log_probs[row, code].argmax())
            code = code * 3 + token + 1
