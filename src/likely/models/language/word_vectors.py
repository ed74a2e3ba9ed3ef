"""WordVectors: words as points, near those that occur in the same company.

skip_gram     tell the neighbours of a word from random words      cbow   the word, from the mean of its neighbours
log_bilinear  p(neighbour | word), normalised over all words       glove  least squares on logarithms of counts
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np

from ...core.declared import COUNTS, FINITE, NUMBERS, TEXTS, Array, Arrays, Values
from ...core.errors import DataError, ModelFileError, SpecError
from ...core.learned import Learned
from ...core.random import seed_of
from ...core.spec import is_integer
from ...core.validation import as_weights
from .sentences import Sentences, read_sentences, read_words

__all__ = ["WordVectors"]

RATES = {"skip_gram": 0.025, "cbow": 0.05, "log_bilinear": 0.02, "glove": 0.05}
"""The learning rates that each objective is known to do well with."""
LARGEST = 100.0
"""The count from which on a pair has its full weight in glove."""


class WordVectors(Learned):
    """Vectors of `width` numbers for the words of sentences: strings to be split on white space, or lists of words.

    `window` is how far neighbours may be (of skip_gram and cbow, at random from 1 to that), `negative` how many random
    words a true one is told from, and these are drawn by count to the power `noise_power`. Words rarer than `min_count`
    are left out; of words more frequent than a fraction `subsample` of the text, some occurrences are.
    `learning_rate=None` takes one that suits the objective. The same seed gives the same bits.

    Learns `vocabulary_` (by falling count), `vectors_` and `contexts_` (V, width; of glove `vectors_` is the sum of
    both), and `history_`: the mean loss of a pair in each epoch, counted as it was met. A text has no probability under
    its pairs, so there is no `log_prob`.

    >>> text = ["the cat sat", "the dog sat", "a cat ran", "a dog ran", "the sun rose", "a sun set"] * 30
    >>> model = WordVectors(16, window=1, min_count=1, epochs=20, subsample=0.0, random_state=0).fit(text)
    >>> model.most_similar("cat", 1)[0][0]
    'dog'
    """

    _arrays: ClassVar[Arrays] = {
        "vectors_": Array("V W", FINITE, "float32"),
        "contexts_": Array("V W", FINITE, "float32"),
    }
    _values: ClassVar[Values] = {"vocabulary_": TEXTS, "counts_": COUNTS, "history_": NUMBERS}

    def __init__(
        self,
        width: int = 100,
        window: int = 5,
        negative: int = 5,
        objective: Literal["skip_gram", "cbow", "log_bilinear", "glove"] = "skip_gram",
        epochs: int = 5,
        min_count: int = 5,
        subsample: float = 1e-3,
        noise_power: float = 0.75,
        learning_rate: float | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.width = width
        self.window = window
        self.negative = negative
        self.objective = objective
        self.epochs = epochs
        self.min_count = min_count
        self.subsample = subsample
        self.noise_power = noise_power
        self.learning_rate = learning_rate
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the vectors of the words in sentences X; `sample_weight` is how much the pairs of a sentence count."""
        self._forget()
        self._check_arguments()
        rows = read_words(X)
        weight = as_weights(sample_weight, np.empty(len(rows)))
        text = read_sentences(rows, self.min_count, None if weight is None else weight.numpy())
        history: list[float] = []

        def report(loss: float) -> None:
            history.append(float(loss))
            if self.verbose:
                print(f"epoch {len(history)}: loss {loss:.4f}", flush=True)

        vectors, contexts = self._trained(text, seed_of(self.random_state), report)
        if not (np.isfinite(vectors).all() and np.isfinite(contexts).all()):
            raise DataError(f"learning_rate={self._rate():g} made vectors that are not finite; take a smaller one.")
        self.vectors_, self.contexts_ = vectors, contexts
        self.vocabulary_, self.counts_, self.history_ = text.vocabulary, text.counts.tolist(), history
        return self

    def _trained(self, text: Sentences, seed: int, report: Any) -> tuple[np.ndarray, np.ndarray]:
        """By the objective's own loop, loaded when it is used."""
        same: dict[str, Any] = {
            "width": self.width,
            "epochs": self.epochs,
            "rate": self._rate(),
            "seed": seed,
            "report": report,
        }
        if self.objective in ("skip_gram", "cbow"):
            from .negative_sampling import train_by_noise

            own: dict[str, Any] = {"window": self.window, "negative": self.negative, "power": self.noise_power}
            return train_by_noise(text, cbow=self.objective == "cbow", subsample=self.subsample, **own, **same)
        from .co_occurrence import co_occurrences

        glove = self.objective == "glove"
        pairs, size = co_occurrences(text, self.window, by_distance=glove), len(text.vocabulary)
        if not len(pairs.counts):
            raise DataError("X has no two words of the vocabulary in one sentence, so that nothing is near anything.")
        if glove:
            from .glove import train_glove

            vectors, contexts = train_glove(pairs, size, largest=LARGEST, **same)
            return vectors + contexts, contexts  # both are of all words alike, and their sum is steadier
        from .log_bilinear import train_softmax

        return train_softmax(pairs, size, **same)

    def _rate(self) -> float:
        return RATES[self.objective] if self.learning_rate is None else float(self.learning_rate)

    # --- questions ----------------------------------------------------------------------------------------------
    def transform(self, X: Any) -> np.ndarray:
        """The vector of each word, or the mean of those of each sentence: (n, width).

        Words of a sentence that are not in the vocabulary have no part in it; one of them at least must be.
        """
        self._check_fitted()
        rows = [[self._number.get(word, -1) for word in row] for row in read_words(X)]
        means = np.empty((len(rows), self.vectors_.shape[1]), np.float32)
        for place, row in enumerate(rows):
            known = [number for number in row if number >= 0]
            if not known:
                raise DataError(f"X[{place}] = {X[place]!r} has no word of the vocabulary.")
            means[place] = self.vectors_[known].mean(0)
        return means

    def most_similar(self, word: str | Sequence[float] | np.ndarray, n: int = 10) -> list[tuple[str, float]]:
        """The n words at the smallest angle to a word (or to a vector), and the cosine of that angle."""
        self._check_fitted()
        if isinstance(word, str):
            return self._nearest(self.transform([word])[0], n, {word})
        return self._nearest(np.asarray(word, np.float32), n, set())

    def analogy(self, a: str, b: str, c: str, n: int = 1) -> list[tuple[str, float]]:
        """The n words that are to c what b is to a: nearest to b − a + c in unit vectors, none of the three."""
        self._check_fitted()
        first, second, third = (_unit(self.transform([word])) for word in (a, b, c))
        return self._nearest((second - first + third)[0], n, {a, b, c})

    def _nearest(self, vector: np.ndarray, n: int, but: set[str]) -> list[tuple[str, float]]:
        if not is_integer(n):
            raise DataError(f"n={n!r}: how many words must be an integer above 0.")
        if vector.shape != self.vectors_.shape[1:]:
            raise DataError(
                f"word is a vector of shape {vector.shape}; those of the words are {self.vectors_.shape[1:]}."
            )
        cosine = _unit(self.vectors_) @ _unit(vector[None])[0]
        order = [int(place) for place in np.argsort(-cosine, kind="stable") if self.vocabulary_[place] not in but]
        return [(self.vocabulary_[place], float(cosine[place])) for place in order[:n]]

    @property
    def _number(self) -> dict[str, int]:
        """The number of each word; not learned, so not kept."""
        return {word: place for place, word in enumerate(self.vocabulary_)}

    # --- checks -------------------------------------------------------------------------------------------------
    def _check_arguments(self) -> None:
        if self.objective not in RATES:
            raise SpecError(f"objective={self.objective!r} must be one of {', '.join(map(repr, RATES))}.")
        for name in ("width", "window", "negative", "epochs", "min_count"):
            if not is_integer(getattr(self, name)):
                raise SpecError(f"{name}={getattr(self, name)!r} must be an integer above 0.")
        rate = 1.0 if self.learning_rate is None else self.learning_rate
        for name, value, least in (("learning_rate", rate, 0), ("noise_power", self.noise_power, -1)):
            if not isinstance(value, int | float | np.number) or not least < value < np.inf:
                raise SpecError(f"{name}={value!r} must be a number above {least}.")
        if not isinstance(self.subsample, int | float | np.number) or not 0 <= self.subsample <= 1:
            raise SpecError(f"subsample={self.subsample!r} must be a fraction between 0 and 1; 0 reads every word.")

    def _check_learned(self) -> None:
        size = len(self.vocabulary_)
        if not size == len(set(self.vocabulary_)) == len(self.counts_) == len(self.vectors_):
            raise ModelFileError("The file has a vocabulary that is not one of different words with a vector each.")


def _unit(rows: np.ndarray) -> np.ndarray:
    """Rows of length 1; those of zeros stay so."""
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(length > 0, length, 1.0)
