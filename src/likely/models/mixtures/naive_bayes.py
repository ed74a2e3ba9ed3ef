"""Naive Bayes: the columns of a row are independent given its class.

    p(y | x) ∝ p(y) Πⱼ p(xⱼ | y)

Each class is a distribution of rows, fitted to the rows that have its label. So all that is learned are sums over
rows: data may come in pieces, and a missing value is left out of the product.
"""

from __future__ import annotations

from itertools import compress
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from scipy.sparse import issparse
from sklearn.base import ClassifierMixin
from torch import Tensor, distributions

from ...core.declared import FORM, SIMPLEX, TABLE, Array, Arrays, Values, maybe
from ...core.draws import count_of, form_of, in_form
from ...core.errors import DataError, ModelFileError
from ...core.random import isolated
from ...core.spec import require
from ...core.threads import threads_for
from ...core.validation import as_rows, as_weights, check_finite
from ...likelihoods import Normal
from ..emissions import Columns
from ..emissions.part import blocks
from ..labels import Labelled, as_column, encode_labels, read_labels, several_classes
from ..scored import Scored
from ..supervised.texts import is_auto, texts_of
from . import sparse_columns
from .sparse_classes import BACKGROUND, SparseClasses, add_rows, numbered, some_of
from .text_classes import counted

__all__ = ["NaiveBayes"]


class NaiveBayes(SparseClasses, ClassifierMixin, Scored, Labelled):
    """One likelihood for all columns, a list with one for each, a dict by the names of columns, or a `Product`.

    `smoothing` is how often each class is taken to have seen each label, beside the data, in columns of labels
    (Laplace's rule). `class_prior` are the probabilities of the classes, in their order; None takes their frequencies.
    A missing value (NaN) does not count, nor does a row without a label.

    X may be a sparse matrix of SciPy: with one likelihood of labels or counts for all columns (`Bernoulli`, `Poisson`)
    only its entries are looked at; with others its rows become dense a few at a time, which needs likelihoods with
    sufficient statistics. So it is in `partial_fit`.

    X may be texts, a list of strings: then each class is a distribution of the words and pairs of words that its texts
    have (multinomial, each word counted once per text), cut as `tokens` says: "auto", `Bag(…)`, `Words(…)`, … .

    >>> from likely.likelihoods import Bernoulli
    >>> X, y = [[170.0, 0], [180.0, 0], [160.0, 1], [165.0, 1]], ["a", "a", "b", "b"]
    >>> model = NaiveBayes([Normal(), Bernoulli()]).fit(X, y)
    >>> model.predict([[175.0, np.nan], [np.nan, 1]])
    array(['a', 'b'], dtype='<U1')
    >>> model.predict_proba([[np.nan, 1]])           # (2 + 1) / (2 + 2) against (0 + 1) / (2 + 2)
    array([[0.25, 0.75]])
    """

    _arrays: ClassVar[Arrays] = {
        "eta_": Array("C *"),
        "class_prior_": Array("C", SIMPLEX),
        "totals_": maybe(Array("C *")),
        "origin_": maybe(Array("D")),
    }
    _values: ClassVar[Values] = {"emission_": TABLE, "form_": FORM, "vocabulary_": maybe(TABLE)}
    log_prob_kind_: ClassVar[str] = "exact"

    def __init__(
        self,
        likelihood: Any = Normal(),  # noqa: B008 (a frozen value)
        smoothing: float = 1.0,
        class_prior: Any = None,
        random_state: Any = None,
        tokens: Any = "auto",
    ) -> None:
        self.tokens = tokens
        self.likelihood = likelihood
        self.smoothing = smoothing
        self.class_prior = class_prior
        self.random_state = random_state

    # --- fitting ------------------------------------------------------------------------------------------------
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit each class to its rows."""
        self._forget()
        if (texts := texts_of(X, cut=not is_auto(self.tokens))) is not None:
            return self._fit_texts(texts, y, sample_weight)
        if issparse(X):
            return self._fit_sparse(X, y, sample_weight)
        x = self._rows(X, reset=True)
        labels, missing = self._labels(y, len(x))
        self.classes_, self.form_ = several_classes(labels[~missing], "y"), form_of(X)
        weight = counted(missing, as_weights(sample_weight, x))
        emission = self._emission(x, weight)
        return self._learn(emission, x, encode_labels(labels, missing, self.classes_), weight)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from more rows: the end is that of `fit` on all of them. The first call must name all `classes`.

        It needs likelihoods with sufficient statistics. How many labels a `Categorical` has is read from the first
        rows, unless it says so itself.
        """
        first = not self.__sklearn_is_fitted__()
        if texts_of(X) is not None:
            raise DataError("partial_fit takes numbers; the words of texts are learned from all of them: use fit.")
        if first and classes is None:
            raise DataError("classes must be passed on the first call to partial_fit: these rows may lack some.")
        if issparse(X):
            return self._partial_sparse(X, y, classes, sample_weight)
        x = self._rows(X, reset=first)
        self.classes_, self.form_ = self._known(classes, first), form_of(X)
        labels, missing = self._labels(y, len(x))
        index = encode_labels(labels, missing, self.classes_)
        weight = counted(missing, as_weights(sample_weight, x))
        emission = self._emission(x, weight) if first else self._learned(x)
        if not first:
            emission.bind(x, weight)
            emission.origin = torch.from_numpy(self.origin_)  # that of the sums so far
        self._refuse_without_sums(emission, "partial_fit", "use fit")
        return self._learn(emission, x, index, weight, None if first else self.totals_)

    def _learn(
        self, emission: Columns, x: Tensor, index: np.ndarray, weight: Tensor, before: np.ndarray | None = None
    ) -> Self:
        totals = emission.zeros(1, len(self.classes_))
        add_rows(emission, totals, x, numbered(index), weight)
        return self._conclude(emission, totals, before)

    def _conclude(self, emission: Columns, totals: dict[str, Tensor], before: np.ndarray | None = None) -> Self:
        """What the sums say of the classes, with those of earlier rows."""
        if before is not None:
            widths = [total[0, 0].numel() for total in totals.values()]
            earlier = torch.from_numpy(before).split(widths, 1)
            totals = {
                name: total + own.reshape(total.shape)
                for (name, total), own in zip(totals.items(), earlier, strict=True)
            }
        self.class_prior_ = self._prior(totals["rows"][0].numpy())
        self.eta_ = emission.maximise(None, self._smoothed(emission, totals))["eta"][0].numpy()
        sums = [total.reshape(len(self.classes_), -1) for total in totals.values()]
        self.totals_ = None if "weight" in totals else torch.cat(sums, 1).numpy()
        self.origin_, self.emission_ = emission.origin.numpy(), emission.to_json()
        return self

    def _smoothed(self, emission: Columns, totals: dict[str, Tensor]) -> dict[str, Tensor]:
        """The sums as if each class had seen each label `smoothing` times more."""
        smoothed = dict(totals)
        for index, part in enumerate(emission.parts):
            labels = torch.arange(part.target.classes or 2, dtype=torch.float64)
            constant = labels.unsqueeze(-1).expand(-1, len(emission.origin))  # rows of one label throughout
            once = torch.ones(len(labels), 1, dtype=torch.float64)
            sums = part.sums(constant, once, emission.origin) if part.likelihood.labels else None
            if sums is not None:
                smoothed[f"part{index}"] = totals[f"part{index}"] + self.smoothing * sums
        return smoothed

    def _prior(self, counts: np.ndarray) -> np.ndarray:
        if self.class_prior is None:
            return counts / counts.sum()
        prior = np.asarray(self.class_prior, dtype=np.float64)
        fits = prior.shape == counts.shape and bool((prior >= 0).all()) and abs(prior.sum() - 1) < 1e-6
        require(fits, self, "class_prior", f"{len(counts)} probabilities that sum to 1, one for each class")
        return prior / prior.sum()

    # --- questions ----------------------------------------------------------------------------------------------
    def joint_log_prob(self, X: Any) -> np.ndarray:
        """log p(x, y) for each class: (n, classes), in the order of `classes_`."""
        return self._joint(X).numpy()

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each row."""
        best = self._joint(X).argmax(1).numpy()
        return self.classes_[best]

    def predict_proba(self, X: Any) -> np.ndarray:
        """p(y | x) of each class: (n, classes), in the order of `classes_`."""
        return _conditional(self._joint(X)).exp().numpy()

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """The logarithm of `predict_proba`, finite also where a probability is too small for a number."""
        return _conditional(self._joint(X)).numpy()

    def predict_dist(self, X: Any) -> distributions.Categorical:
        """p(y | x) of each row: a distribution of the position of y in `classes_`."""
        return distributions.Categorical(logits=_conditional(self._joint(X)), validate_args=False)

    def log_prob(self, X: Any, y: Any) -> np.ndarray:
        """log p(y | x) of each row; 0 for a missing label."""
        log_proba = self.predict_log_proba(X)
        labels, missing = self._labels(y, len(log_proba))
        index = encode_labels(labels, missing, self.classes_)
        log_prob = np.take_along_axis(log_proba, np.nan_to_num(index).astype(np.intp)[:, None], 1)[:, 0]
        return np.where(missing, 0.0, log_prob)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The accuracy: the fraction of labels, of those that are not missing, that `predict` finds."""
        predicted = self.predict(X)
        labels, missing = self._labels(y, len(predicted))
        weight = counted(missing, as_weights(sample_weight, torch.empty(len(predicted))))
        return float(np.average(predicted == labels, weights=weight.numpy()))

    def sample(self, X: Any, n: int = 1, random_state: Any = None) -> np.ndarray:
        """Draw n labels for each row from p(y | x): an array (n, rows)."""
        count, distribution = count_of(n), self.predict_dist(X)
        with isolated(self._seed(random_state)):
            return self.classes_[distribution.sample(torch.Size([count])).numpy()]

    def joint_sample(self, n: int = 1, random_state: Any = None) -> tuple[Any, np.ndarray]:
        """Draw n rows (a frame if the model was fitted to one) and their labels from p(x, y)."""
        self._refuse_texts("joint_sample draws no texts")
        count = count_of(n)
        with isolated(self._seed(random_state)):
            label = torch.multinomial(torch.from_numpy(self.class_prior_), count, replacement=True)
            rows = self._learned().sample({"eta": torch.from_numpy(self.eta_)}, label)
        drawn = in_form(rows.numpy(), self.form_, getattr(self, "feature_names_in_", None))
        return drawn, self.classes_[label.numpy()]

    def impute(self, X: Any, draws: int | None = None, random_state: Any = None) -> Any:
        """X with each missing value at its mean given the known ones of its row (of labels, the most probable).

        With `draws`, so many draws of it instead: (draws, n, d). The class of the row is unknown, with p(y | x).
        """
        self._refuse_texts("impute fills no texts")
        probability = torch.from_numpy(self.predict_proba(X))
        x, emission, params = self._rows(X, reset=False).double(), self._learned(), {"eta": torch.from_numpy(self.eta_)}
        if draws is None:
            filled = torch.where(x.isnan(), emission.expected(params, x, probability), x)
            return in_form(filled.numpy(), form_of(X), getattr(self, "feature_names_in_", None))
        with isolated(self._seed(random_state)):
            label = torch.multinomial(probability, count_of(draws, "draws"), replacement=True)
            return torch.stack([emission.filled(params, x, own) for own in label.unbind(1)]).numpy()

    def _joint(self, X: Any) -> Tensor:
        self._check_fitted()
        if self._of_texts:
            return self._joint_of_texts(X)
        if issparse(X):
            emission, rows = self._learned(), sparse_columns.rows_of(sparse_columns.as_table(X))
            if rows is not None and sparse_columns.by_entries(emission) and X.shape[1] == self.n_features_in_ > 0:
                self._check_smoothing()
                joint = sparse_columns.log_prob_of(emission, torch.from_numpy(self.eta_), rows)
                return joint.add_(torch.from_numpy(self.class_prior_).log())
            table = sparse_columns.as_table(X)
            some = some_of(np.arange(X.shape[0]), X.shape[1])
            return torch.cat([self._joint(table[rows].toarray()) for rows in some])
        x = self._rows(X, reset=False)
        emission, parts = self._learned(x), blocks(x)
        with threads_for(len(parts[0]) * self._work):
            return torch.cat([self._joint_of(emission, rows) for rows in parts])

    def _joint_of(self, emission: Columns, x: Tensor) -> Tensor:
        """log p(x, y) of each class, (n, classes)."""
        params = {"eta": torch.from_numpy(self.eta_).unsqueeze(0)}
        return emission.log_prob(params, x)[:, 0] + torch.from_numpy(self.class_prior_).log()

    # --- as a function of the rows ------------------------------------------------------------------------------
    @property
    def _score(self) -> Literal["log_prob"]:
        return "log_prob"

    def _points(self, X: Any) -> Tensor:
        self._check_fitted()
        if self._of_texts:
            raise DataError("The NaiveBayes was fitted on texts, which have no small changes: gradients need numbers.")
        x = self._rows(X, reset=False)
        check_finite(x, "X", getattr(self, "feature_names_in_", None))
        self._learned(x)
        return x.double()

    def _scores(self, x: Tensor) -> Tensor:
        return _conditional(self._joint_of(self._learned(), x))

    @property
    def _work(self) -> float:
        return float(self.eta_.size)

    @property
    def _ends(self) -> Tensor | None:
        ends = None if self._of_texts else self._learned().ends()
        return None if ends is None or bool(ends.isinf().all()) else ends

    # --- data at the door ---------------------------------------------------------------------------------------
    def _check_smoothing(self) -> None:
        smoothing = self.smoothing
        number = isinstance(smoothing, int | float) and not isinstance(smoothing, bool)
        require(number and 0 <= smoothing < float("inf"), self, "smoothing", "0 or a positive number")

    def _rows(self, X: Any, *, reset: bool) -> Tensor:
        self._check_smoothing()
        if not reset and texts_of(X) is not None:
            raise DataError("X has text; the model was fitted on numbers.")
        x = as_rows(self, X, reset=reset, missing=True)
        if x.ndim != 2:
            raise DataError(f"X has shape {tuple(x.shape)}; NaiveBayes needs one vector for each row: (n, d).")
        return x

    def _labels(self, y: Any, rows: int) -> tuple[np.ndarray, np.ndarray]:
        labels, missing = as_column(*read_labels(y, "NaiveBayes", rows=rows))
        if labels.ndim != 1:
            raise DataError(f"y has shape {labels.shape}; NaiveBayes needs one label per row: (n,).")
        return labels, missing

    def _emission(self, x: Tensor, weight: Tensor) -> Columns:
        """The distribution of a class, for rows like these."""
        emission = Columns.of(self.likelihood, x, getattr(self, "feature_names_in_", None), BACKGROUND)
        emission.bind(x, weight)
        names = [name for part in emission.parts for name in part.names]
        for name in compress(names, x.isnan().all(0).tolist() if bool(x.sum().isnan()) else []):
            raise DataError(f"{name} has no value: every one is missing; leave it out.")
        return emission

    def _learned(self, x: Tensor | None = None) -> Columns:
        """The distribution of a class, as before; rows x must be like those."""
        emission = Columns.from_json(self.emission_)
        if x is not None:
            emission.check(x)
        return emission

    # --- files and tags -----------------------------------------------------------------------------------------
    def _check_learned(self) -> None:
        if self._of_texts:
            self._check_words()
            return
        if self.origin_ is None:
            raise ModelFileError("The file does not hold what a fitted NaiveBayes learned: origin_ is missing.")
        emission = self._learned()
        emission.check_params({"eta": torch.from_numpy(self.eta_)}, len(self.classes_), self.n_features_in_)
        widths = [part.width() for part in emission.parts]
        sums = 1 + sum(part.count * (width or 0) for part, width in zip(emission.parts, widths, strict=True))
        if self.totals_ is not None and (None in widths or self.totals_.shape[1] != sums):
            raise ModelFileError(f"NaiveBayes's totals_ has shape {self.totals_.shape}; its columns have {sums} sums.")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags


def _conditional(joint: Tensor) -> Tensor:
    """log p(y | x). Where no class allows a row, all are equally far from it."""
    return joint.clamp(min=torch.finfo(joint.dtype).min / 4).log_softmax(1)
