"""Classes of texts, each a distribution of the words that its texts have; their order does not count.

p(y | text) ∝ p(y) Π p(word | y)        over the different words and pairs of words of the text
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from ...core.draws import form_of
from ...core.errors import DataError, ModelFileError
from ...core.spec import require
from ...core.validation import as_weights
from ...data.sparse_rows import SparseRows
from ...data.text import BagVocabulary, Text
from ...networks import Linear
from ..evidence import Evidence
from ..labels import Labelled, encode_labels, several_classes
from ..supervised.texts import encoder_of, texts_of

__all__ = ["TextClasses", "counted"]


class TextClasses(Labelled):
    """What `NaiveBayes` does with texts."""

    smoothing: float
    tokens: Any
    eta_: np.ndarray
    class_prior_: np.ndarray
    vocabulary_: dict[str, Any]
    emission_: Any
    totals_: np.ndarray | None
    origin_: np.ndarray | None

    def _labels(self, y: Any, rows: int) -> tuple[np.ndarray, np.ndarray]:
        raise NotImplementedError

    def _prior(self, counts: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def _check_smoothing(self) -> None:
        raise NotImplementedError

    def _fit_texts(self, texts: Sequence[Text], y: Any, sample_weight: Any) -> Self:
        """Count in how many texts of each class there is each word and each pair of words."""
        self._check_smoothing()
        require(self.smoothing > 0, self, "smoothing", "positive for texts, of which most words are rare")
        labels, missing = self._labels(y, len(texts))
        self.classes_, self.form_ = several_classes(labels[~missing], "y"), form_of(texts)
        bag: Any = encoder_of(self.tokens, Linear(), len(texts)).fit([text for text in texts if len(text)])
        weight = counted(missing, as_weights(sample_weight, texts))
        index = torch.from_numpy(np.nan_to_num(encode_labels(labels, missing, self.classes_))).long()
        evidence = Evidence.of(bag.rows(texts), index, weight, len(self.classes_), bag.kinds, self.smoothing)
        rows = torch.zeros(len(self.classes_), dtype=torch.float64).index_add_(0, index, weight)
        self.class_prior_ = self._prior(rows.numpy())
        self.n_features_in_, self.emission_, self.totals_, self.origin_ = bag.size, {}, None, None
        self.__dict__.pop("feature_names_in_", None)
        self.eta_, self.vocabulary_ = evidence.log_theta.numpy(), bag.to_json()
        return self

    def _texts(self, X: Any) -> SparseRows:
        """Texts as bags in which every word that is there counts once."""
        texts = texts_of(X, cut=True)
        if texts is None:
            raise DataError("X must be a list of strings, one for each row: the model was fitted on texts.")
        if "_bag" not in self.__dict__:
            self.__dict__["_bag"] = BagVocabulary.from_json(self.vocabulary_)
        rows = self.__dict__["_bag"].rows(texts)
        return rows.with_features(torch.ones_like(rows.values))

    @property
    def _of_texts(self) -> bool:
        return self.__dict__.get("vocabulary_") is not None

    def _forget(self) -> None:
        super()._forget()
        self.__dict__.pop("_bag", None)

    def _refuse_texts(self, what: str) -> None:
        self._check_fitted()
        if self._of_texts:
            raise DataError(f"{what}: NaiveBayes knows which words a text has, and not their order.")

    def _joint_of_texts(self, X: Any) -> Tensor:
        joint = self._texts(X).matrix @ torch.from_numpy(self.eta_).T
        return joint + torch.from_numpy(self.class_prior_).log()

    def _check_words(self) -> None:
        bag = BagVocabulary.from_json(self.vocabulary_)
        if self.eta_.shape[1] != bag.size or bool((self.eta_ > 0).any()):
            raise ModelFileError(f"NaiveBayes's eta_ are not log-probabilities of {bag.size} words.")


def counted(missing: np.ndarray, weight: Tensor | None) -> Tensor:
    """The weight of each row, 0 without a label."""
    counted = torch.from_numpy(~missing).double()
    counted = counted if weight is None else counted * weight
    if not bool(counted.any()):
        raise DataError("y has no label that counts: each is missing, or has no sample_weight.")
    return counted
