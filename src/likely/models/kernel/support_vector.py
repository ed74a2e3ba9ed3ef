"""Support vectors: the widest margin between classes, or the flattest tube around numbers, in a kernel's feature space.

    classes:   min over w, b, ξ of ½‖w‖² + C Σξᵢ   with   yᵢ(w·φ(xᵢ) + b) ≥ 1 − ξᵢ,   ξ ≥ 0,   y = ±1
    numbers:   min over w, b, ξ of ½‖w‖² + C Σξᵢ   with   |yᵢ − w·φ(xᵢ) − b| ≤ ε + ξᵢ,   ξ ≥ 0

It is solved by its dual: f(x) = Σᵢ βᵢ k(xᵢ, x) + b, with βᵢ = yᵢαᵢ, 0 ≤ αᵢ ≤ C and Σβᵢ = 0. Rows with βᵢ ≠ 0 are the
support vectors; no other is kept. The margin between the classes is 2/‖w‖, ‖w‖² = βᵀKβ. C = ∞ allows no slack.
"""

from __future__ import annotations

import math
import warnings
from itertools import combinations
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from scipy.special import expit
from sklearn.utils.metaestimators import available_if
from torch import Tensor, distributions

from ...core.declared import NOT_NEGATIVE, NUMBER, NUMBERS, UNCHECKED, Array, Arrays, Value, Values, maybe
from ...core.draws import count_of
from ...core.errors import ConvergenceWarning, DataError, ModelFileError, TrainingError
from ...core.random import isolated, seed_of, spread
from ...core.spec import require
from ...core.validation import as_weights
from ...kernels import RBF
from ..labels import (
    Labelled,
    as_column,
    encode_labels,
    read_labels,
    several_classes,
    shown,
)
from .kernel_machine import KernelMachine, check_covariance, numbers_of
from .platt import couple
from .scoring import quality
from .support_vector_dual import (
    Solution,
    calibrated,
    centred,
    classes_dual,
    numbers_dual,
    solve,
    solve_hard,
)
from .votes import decision

__all__ = ["SupportVector"]


def _classifies(model: SupportVector) -> bool:
    return model.epsilon is None


def _of_classes(model: SupportVector) -> bool:
    if model.epsilon is not None:
        raise AttributeError("SupportVector(epsilon=…) is a regressor; for classes leave epsilon=None.")
    return True


def _of_probabilities(model: SupportVector) -> bool:
    if not model.probability:
        raise AttributeError("SupportVector(probability=False) has no probabilities; fit with probability=True.")
    return _of_classes(model)


class SupportVector(KernelMachine, Labelled):
    """A classifier, or with `epsilon` a regressor that forgives errors up to it.

    `C` is the price of a unit of slack; `C=float("inf")` is the hard margin. More than two classes are separated pair
    by pair. `probability` adds Platt's calibration on five folds, which costs as many fits; near ½ a probability and
    the side of the margin, which `predict` goes by, may differ. `tol` is how far the solution may be from the
    conditions of its optimum, for numbers in units of the spread of y.

    Learned: `support_` (which rows), `support_vectors_`, `dual_coef_` = β and `intercept_` of each pair of classes
    (positive for the later one), `n_support_` of each class, `margin_` = 2/‖w‖ (for each pair, if there are several),
    `slack_` of the support vectors (all others have none), `kkt_residual_`.

    >>> X, y = [[0.0], [1.0], [3.0], [4.0]], ["a", "a", "b", "b"]
    >>> model = SupportVector("linear", C=float("inf"), probability=False).fit(X, y)
    >>> model.support_vectors_.tolist(), round(model.margin_, 6)
    ([[1.0], [3.0]], 2.0)
    >>> model.predict([[1.9], [2.1]])
    array(['a', 'b'], dtype='<U1')
    >>> SupportVector(epsilon=0.1).fit(X, [0.0, 1.0, 3.0, 4.0]).predict([[1.0]]).round(1)
    array([1.1])
    """

    _arrays: ClassVar[Arrays] = {
        "dual_coef_": Array("P N", empty=True),
        "intercept_": Array("P"),
        "support_": Array("N", dtype="int64", empty=True),
        "support_vectors_": Array("N D …", empty=True),
        "n_support_": Array("groups", dtype="int64"),
        "slack_": Array("N | N P", NOT_NEGATIVE, empty=True),
        "sigmoid_": maybe(Array("P 2", UNCHECKED)),
    }
    _values: ClassVar[Values] = {
        "margin_": Value("a number, or one for each pair", lambda m: NUMBER.holds(m) or NUMBERS.holds(m)),
        "kkt_residual_": NUMBER,
    }
    _kept = "support_vectors_"
    sigmoid_: np.ndarray | None

    def __init__(
        self,
        kernel: Any = RBF(),  # noqa: B008 (a frozen value)
        C: float = 1.0,
        epsilon: float | None = None,
        probability: bool = True,
        tol: float = 1e-6,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.epsilon = epsilon
        self.probability = probability
        self.tol = tol
        self.random_state = random_state

    # --- fitting ------------------------------------------------------------------------------------------------
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Solve the dual; for several classes that of each pair. A row without a target (NaN, None) does not count."""
        self._forget()
        self.__dict__.pop("classes_", None)
        self._check_arguments()
        x = self._open(X)
        weight = as_weights(sample_weight, x)
        counts = np.ones(len(x)) if weight is None else weight.numpy()
        if _classifies(self):
            labels, missing = self._labels(y, len(x))
            used = ~missing & (counts > 0)
            self.classes_ = several_classes(labels[used], none="no label that counts")
            target = encode_labels(labels, ~used, self.classes_)
        else:
            target = self._numbers(y, len(x))
            used = ~np.isnan(target) & (counts > 0)
            if not used.any():
                raise DataError("y has no target: all are missing or have zero weight.")
        rows = np.flatnonzero(used)
        K = self._matrix(x[torch.from_numpy(rows)]).numpy()
        check_covariance(K, self.kernel_)
        fit = self._fit_classes if _classifies(self) else self._fit_numbers
        beta, slack = fit(K, target[rows], counts[rows])
        self._keep(x.numpy(), rows, beta, slack, target)
        if self.kkt_residual_ > self.tol:
            warnings.warn(
                f"The solution is {self.kkt_residual_:.1e} from the conditions of its optimum, more than "
                f"tol={self.tol:g}; scale the columns of X, or lower C.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _fit_classes(self, K: np.ndarray, label: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """β and slack (rows, pairs)."""
        pairs = list(combinations(range(len(self.classes_)), 2))
        beta, slack = np.zeros((len(K), len(pairs))), np.zeros((len(K), len(pairs)))
        level, residual, margin, sigmoid = np.zeros(len(pairs)), 0.0, [], []
        for column, (pair, seed) in enumerate(zip(pairs, spread(seed_of(self.random_state), len(pairs)), strict=True)):
            rows = np.flatnonzero(np.isin(label, pair))
            sign = np.where(label[rows] == pair[1], 1.0, -1.0)
            inner, shift = centred(K, rows)
            if math.isinf(self.C):
                solution = solve_hard(inner, sign, None, self.tol)
            else:
                solution = solve(inner, classes_dual(sign, self.C * weight[rows]), weight[rows], self.C, self.tol)
            if solution is None or (math.isinf(self.C) and solution.residual > 1e-2):
                raise TrainingError(
                    f"C=inf allows no slack, but the classes {shown(self.classes_[list(pair)])} cannot be separated by "
                    f"{self.kernel_!r}; give C a finite value, or take a kernel with more freedom."
                )
            beta[rows, column], level[column] = solution.beta, solution.intercept - shift @ solution.beta
            slack[rows, column] = np.maximum(0.0, 1 - sign * (inner @ solution.beta + solution.intercept))
            residual = max(residual, solution.residual)
            size = math.sqrt(max(0.0, float(solution.beta @ inner @ solution.beta)))
            margin.append(2 / size if size > 0 else math.inf)
            if self.probability:
                sigmoid.append(calibrated(inner, sign, weight[rows], solution.C, seed))
        self.intercept_, self.kkt_residual_ = level, residual
        self.margin_ = margin[0] if len(margin) == 1 else margin
        self.sigmoid_ = np.array(sigmoid) if self.probability else None
        return beta, slack

    def _fit_numbers(self, K: np.ndarray, y: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """β and slack (rows, 1). Numbers are solved for in units of their spread, which libsvm's precision is for."""
        centre, unit = float(y.mean()), float(y.std()) or 1.0
        target, epsilon, C = (y - centre) / unit, float(self.epsilon or 0.0) / unit, self.C / unit
        inner, shift = centred(K, np.arange(len(K)))
        solution: Solution | None
        if math.isinf(C):
            solution = solve_hard(inner, target, epsilon, self.tol)
        else:
            solution = solve(inner, numbers_dual(target, epsilon, C * weight), weight, C, self.tol)
        if solution is None or (math.isinf(C) and solution.residual > 1e-2):
            raise TrainingError(
                f"C=inf allows no slack, but no function of {self.kernel_!r} is within epsilon={self.epsilon:g} of "
                "every y; give C a finite value, or raise epsilon."
            )
        error = np.abs(target - inner @ solution.beta - solution.intercept)
        self.intercept_ = np.array([unit * (solution.intercept - shift @ solution.beta) + centre])
        self.kkt_residual_, self.sigmoid_ = solution.residual, None
        size = unit * math.sqrt(max(0.0, float(solution.beta @ inner @ solution.beta)))
        self.margin_ = 2 / size if size > 0 else math.inf
        return unit * solution.beta[:, None], unit * np.maximum(0.0, error - epsilon)[:, None]

    def _keep(self, x: np.ndarray, rows: np.ndarray, beta: np.ndarray, slack: np.ndarray, target: np.ndarray) -> None:
        """Support vectors alone: class by class, as scikit-learn orders them."""
        held = np.flatnonzero((beta != 0).any(1))
        if _classifies(self):
            held = held[np.argsort(target[rows[held]], kind="stable")]
            self.n_support_ = np.bincount(target[rows[held]].astype(np.intp), minlength=len(self.classes_))
        else:
            self.n_support_ = np.array([len(held)])
        self.support_ = rows[held]
        self.support_vectors_ = np.ascontiguousarray(x[self.support_])
        self.dual_coef_ = np.ascontiguousarray(beta[held].T)
        self.slack_ = np.ascontiguousarray(slack[held, 0] if slack.shape[1] == 1 else slack[held])

    # --- questions ----------------------------------------------------------------------------------------------
    def predict(self, X: Any) -> np.ndarray:
        """The class of each row: of several, the one that wins most pairs, and of equals the clearest. Or f(x)."""
        values = self._answers(X)
        if not _classifies(self):
            return values[:, 0]
        best = (values[:, 0] > 0).astype(np.intp) if len(self.classes_) == 2 else self._decision(values).argmax(1)
        return self.classes_[best]

    @available_if(_of_classes)
    def decision_function(self, X: Any) -> np.ndarray:
        """f(x), positive for the second of two classes (n,); of several, votes and confidence (n, classes)."""
        values = self._answers(X)
        return values[:, 0] if len(self.classes_) == 2 else self._decision(values)

    @available_if(_of_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """The calibrated probability of each class: (n, classes), in the order of `classes_`."""
        values = self._answers(X)
        if self.sigmoid_ is None:
            raise DataError("This model was fitted with probability=False; fit it again with probability=True.")
        if not np.isfinite(self.sigmoid_).all():
            raise DataError(
                "A class had a single row in fit, so that probabilities could not be calibrated on rows that were left "
                "out; give each class two rows or more."
            )
        return couple(expit(values * self.sigmoid_[:, 0] + self.sigmoid_[:, 1]), len(self.classes_))

    @available_if(_of_probabilities)
    def predict_dist(self, X: Any) -> distributions.Categorical:
        """p(y | x) of each row: a distribution of the position of y in `classes_`."""
        return distributions.Categorical(torch.from_numpy(self.predict_proba(X)), validate_args=False)

    @property
    def log_prob_kind_(self) -> str:
        """What `log_prob` is, where there is one."""
        _ = self.log_prob  # an AttributeError where there is none
        return "exact"

    @available_if(_of_probabilities)
    def log_prob(self, X: Any, y: Any) -> np.ndarray:
        """log p(y | x) of each row by the calibrated probabilities; 0 for a missing label."""
        distribution = self.predict_dist(X)
        labels, missing = self._labels(y, len(distribution.probs))
        places = torch.from_numpy(np.nan_to_num(encode_labels(labels, missing, self.classes_)))
        return np.where(missing, 0.0, distribution.log_prob(places).numpy())

    @available_if(_of_probabilities)
    def sample(self, X: Any, n: int = 1, random_state: Any = None) -> np.ndarray:
        """Draw n labels for each row by the calibrated probabilities: an array (n, rows)."""
        count, distribution = count_of(n), self.predict_dist(X)
        with isolated(self._seed(random_state)):
            return self.classes_[distribution.sample(torch.Size([count])).numpy()]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The accuracy, or with `epsilon` R², over the rows whose target is not missing."""
        predicted = self.predict(X)
        weight = as_weights(sample_weight, torch.empty(len(predicted)))
        if _classifies(self):
            labels, missing = self._labels(y, len(predicted))
            return quality(labels, predicted, ~missing, weight, labels=True)
        target = self._numbers(y, len(predicted))
        return quality(target, predicted, ~np.isnan(target), weight, labels=False)

    @property
    def _score(self) -> Literal["pairs", "mean"]:
        return "pairs" if _classifies(self) else "mean"

    def _scores(self, x: Tensor) -> Tensor:
        """f(x) for each pair of classes (n, pairs), or (n, 1)."""
        return self._expansion(x, self.dual_coef_.T.copy()) + torch.from_numpy(self.intercept_)

    def _decision(self, values: np.ndarray) -> np.ndarray:
        return decision(torch.from_numpy(values), len(self.classes_)).numpy()

    # --- data at the door, files and tags -----------------------------------------------------------------------
    def _check_arguments(self) -> None:
        def number(value: Any) -> bool:
            return isinstance(value, int | float | np.number) and not isinstance(value, bool)

        require(number(self.C) and self.C > 0, self, "C", "a positive number, or inf for the hard margin")
        width = self.epsilon is None or (number(self.epsilon) and 0 <= self.epsilon < math.inf)
        require(width, self, "epsilon", "None for classes, or 0 or a positive number for regression")
        require(number(self.tol) and 0 < self.tol < 1, self, "tol", "a number between 0 and 1")

    def _labels(self, y: Any, rows: int) -> tuple[np.ndarray, np.ndarray]:
        labels, missing = as_column(*read_labels(y, "SupportVector", rows=rows))
        if labels.ndim != 1:
            raise DataError(f"y has shape {labels.shape}; SupportVector needs one label per row: (n,).")
        return labels, missing

    def _numbers(self, y: Any, rows: int) -> np.ndarray:
        target = numbers_of(y, rows, "SupportVector")
        target, _ = as_column(target, np.isnan(target))
        if target.ndim != 1:
            raise DataError(f"y has shape {target.shape}; SupportVector needs one number per row: (n,).")
        return target

    def _dimensions(self) -> dict[str, Any]:
        known = super()._dimensions()
        classes = known.pop("C", None)
        if (classes is not None) != _classifies(self):
            raise ModelFileError("The file does not fit its own specs: classes are for epsilon=None, and only then.")
        return known | ({"P": 1, "groups": 1} if classes is None else {"P": math.comb(classes, 2), "groups": classes})

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, RegressorTags

        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        if self.epsilon is None:
            tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
        else:
            tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
        return tags
