"""Gaussian process: a prior over functions, and what is left of it once targets are seen.

    f ~ GP(m, k),   y ~ likelihood(f(x)),   log p(y | X) = log ∫ p(y | f) p(f | X) df    (the evidence)

Normal noise has closed forms; other likelihoods have Laplace's approximation. The hyperparameters of the kernel, the
mean and what the likelihood calls learned (σ) maximise the evidence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from sklearn.utils import ClassifierTags, RegressorTags
from sklearn.utils.metaestimators import available_if
from torch import Tensor
from torch.distributions import Distribution, MultivariateNormal
from torch.distributions import Normal as TorchNormal

from ...core.declared import AMOUNT, COUNT, FLAG, NOT_NEGATIVE, NUMBER, Array, Arrays, Values, maybe
from ...core.draws import count_of
from ...core.errors import DataError, LikelyError, ModelFileError, SpecError
from ...core.random import isolated, seed_of, spread
from ...core.spec import Spec, as_spec
from ...core.threads import factorisation, threads_for
from ...core.validation import as_rows, as_weights, check_level, check_squares
from ...kernels import RBF, Kernel, KernelModule
from ...kernels.cholesky import ROUGHER, report_jitter, root_of
from ...likelihoods import Likelihood, Normal, Target
from ...likelihoods.base import log_of_classes, of_classes
from ...probability.joint import point
from ...probability.quantiles import quantile
from ..labels import Labelled
from ..scored import Scored
from .gp.fitting import exact, learn, pose, report_search, solve, solving_work
from .gp.hyperparameters import every_hyperparameter, free, load_hyperparameters, read, write
from .gp.inducing import InducingPosterior
from .gp.laplace import Laplace, LaplacePosterior
from .gp.predictive import predictive
from .gp.regression import ExactPosterior, Regression
from .gp.selection import refuse_many, suitable_points
from .gp.targets import counted, read_classes, read_targets
from .scoring import quality

__all__ = ["GaussianProcess"]

CHUNK = 2_048


def _of_labels(model: Any) -> bool:
    likelihood = model.likelihood
    try:
        return as_spec(likelihood, Likelihood, "likelihood").labels
    except LikelyError:  # said in fit
        return False


class GaussianProcess(Scored, Labelled):
    """A distribution over functions with the covariance `kernel`; `likelihood` says how targets follow the function.

    With a likelihood of labels (`Bernoulli()`, `Categorical()`) it is a classifier, with any other a regressor.
    `Normal()` is exact; `Poisson()`, `StudentT()` and all others have Laplace's approximation (with one latent function
    for each number that the likelihood needs). The prior's variance is the kernel's: `RBF()` has variance 1 whatever
    the units of y, `1.0 * RBF()` has it learned; `kernel="auto"` begins that at the variance of y (labels: `RBF()`).

    `learn=False` holds the kernel's hyperparameters. Otherwise they maximise the evidence, begun `starts` times: from
    where the kernel has them, from where they suit the data, and from points scattered around that. Searches are
    bounded by factors around both; where a bound holds one back, a warning says so and `converged_` is False. Logits of
    labels stay within a standard deviation of 10 (or as given), beyond which Laplace's approximation is poor. `mean` is
    "constant" (learned) or "zero". Time is n³, memory n²; `inducing=m` has m points stand for the rows (normal
    likelihoods: a lower bound), "auto" beyond some thousand rows. Missing targets (NaN) and zero weights do not count.

    Learned: `log_evidence_`, `kernel_` (with its hyperparameters), `noise_` (σ of Normal), `mean_` of each function,
    `shared_` (the likelihood's learned constants as it holds them: logarithms of scales), `converged_`,
    `n_evaluations_`.

    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0]], [0.0, 0.8, 0.9, 0.1, -0.8]
    >>> model = GaussianProcess(1.0 * RBF(), Normal(scale=0.1)).fit(X, y)
    >>> model.predict([[1.5]]).round(1)
    array([1.])
    >>> model.posterior([[0.5], [1.5]]).covariance_matrix.shape
    torch.Size([2, 2])
    >>> from likely.likelihoods import Bernoulli
    >>> GaussianProcess(likelihood=Bernoulli()).fit(X, ["a", "a", "b", "b", "b"]).predict([[0.5], [3.5]])
    array(['a', 'b'], dtype='<U1')
    """

    log_prob_kind_: ClassVar[str] = "exact"
    _kept = "X_train_"
    _arrays: ClassVar[Arrays] = {
        "X_train_": Array("N D …"),
        "y_train_": Array("N | N T"),
        "weight_train_": Array("N", NOT_NEGATIVE),
        "kernel_hyperparameters_": Array("*", empty=True),
        "hyperparameters_": Array("*", empty=True),
        "latent_weights_": maybe(Array("N | N F")),
        "inducing_": maybe(Array("M D …")),
    }
    _values: ClassVar[Values] = {
        "log_evidence_": NUMBER,
        "n_evaluations_": COUNT,
        "converged_": FLAG,
        "jitter_": AMOUNT,
    }

    def __init__(
        self,
        kernel: Any = "auto",
        likelihood: Any = Normal(),  # noqa: B008 (a frozen value)
        mean: Literal["constant", "zero"] = "constant",
        learn: bool = True,
        starts: int = 2,
        inducing: int | Literal["auto"] | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.kernel = kernel
        self.likelihood = likelihood
        self.mean = mean
        self.learn = learn
        self.starts = starts
        self.inducing = inducing
        self.random_state = random_state
        self.verbose = verbose

    # --- fitting ------------------------------------------------------------------------------------------------
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Maximise the evidence and condition on the targets."""
        self._forget()
        for name in ("_posterior", "kernel_", "classes_"):
            self.__dict__.pop(name, None)
        self._check_arguments()
        likelihood = self._likelihood()
        seed = seed_of(self.random_state)
        x = as_rows(self, X, reset=True)
        if likelihood.labels:
            self.classes_, likelihood = read_classes(y, len(x), likelihood)
        targets = read_targets(y, len(x), likelihood, self.__dict__.get("classes_"))
        x, targets, weight = counted(x.double(), targets, as_weights(sample_weight, x), likelihood)
        points = suitable_points(x, self.inducing, likelihood, self._target(likelihood, targets), seed)
        module = self._built(self._kernel(likelihood, targets, weight), x, seed)
        problem = self._problem(module, likelihood, x, targets, weight)
        with threads_for(solving_work(x, points)):
            best = learn(problem, points, self.starts, seed, verbose=bool(self.verbose))
        write(free(module), best.hyperparameters[: read(free(module)).numel()])
        rest = best.hyperparameters[read(free(module)).numel() :]
        self.X_train_, self.y_train_, self.weight_train_ = x.numpy(), targets.numpy(), weight.numpy()
        self.kernel_, self.kernel_hyperparameters_ = module.spec(), every_hyperparameter(module).numpy()
        self.inducing_ = None if points is None else points.numpy()
        self.hyperparameters_, self.latent_weights_ = rest.numpy(), None
        if isinstance(problem, Laplace):
            with threads_for(solving_work(x, points)):
                self.latent_weights_ = problem.solve(rest).weights.numpy()
        self._posterior = posterior = self._solved(problem)
        self.log_evidence_, self.n_evaluations_ = posterior.log_evidence, best.evaluations
        self.converged_, self.jitter_ = best.converged and posterior.converged, posterior.jitter
        report_search(best, problem, converged=self.converged_)
        if self.inducing_ is None:  # of inducing points, jitter only lowers the bound
            report_jitter(self.jitter_, ROUGHER, stacklevel=3)
        return self

    def _problem(
        self, module: KernelModule, likelihood: Likelihood, x: Tensor, y: Tensor, weight: Tensor
    ) -> Regression | Laplace:
        return pose(module, likelihood, self._target(likelihood, y), x, y, weight, constant=self.mean == "constant")

    def _solved(self, problem: Regression | Laplace) -> ExactPosterior | InducingPosterior | LaplacePosterior:
        """The posterior from what was learned, in the same way after `fit` and after `load`."""
        kept = (self.inducing_, self.latent_weights_)
        inducing, weights = (None if array is None else torch.from_numpy(array) for array in kept)
        with threads_for(
            solving_work(problem.x, inducing)
        ):  # as it was searched for: two threads sum otherwise than one
            return solve(problem, torch.from_numpy(self.hyperparameters_), inducing, weights)

    def _built(self, kernel: Kernel, x: Tensor, seed: int) -> KernelModule:
        with isolated(seed):
            module = kernel.build(x).double().eval()
        if not self.learn:
            module.requires_grad_(False)
        return module

    # --- questions ----------------------------------------------------------------------------------------------
    def predict(self, X: Any) -> np.ndarray:
        """The mean of p(y | x, data), or the most probable class."""
        x = self._points(X)
        likelihood = self._likelihood()
        if likelihood.labels:
            return self.classes_[self._probabilities(X).argmax(-1)]
        if not exact(likelihood):
            return torch.cat([point(self._predictive(part)).double() for part in x.split(CHUNK)]).numpy()
        with threads_for(min(len(x), CHUNK) * self.X_train_.size):
            return torch.cat([self._posterior.location(part)[:, 0] for part in x.split(CHUNK)]).numpy()

    def predict_dist(self, X: Any) -> Distribution:
        """p(y | x, data) of each row, a torch distribution of batch shape (n,)."""
        x, likelihood = self._points(X), self._likelihood()
        if not likelihood.labels:
            return self._predictive(x)
        parts = [self._predictive(part) for part in x.split(CHUNK)]  # of all nodes of the integral, labels keep one
        logits = torch.cat([part.logits for part in parts])  # type: ignore[attr-defined]
        return type(parts[0])(logits=logits, validate_args=False)  # type: ignore[call-arg]

    def _predictive(self, x: Tensor) -> Distribution:
        likelihood = self._likelihood()
        with threads_for(min(len(x), CHUNK) * self._size**2):
            parts = [self._posterior.marginal(part) for part in x.split(CHUNK)]
            mean, covariance = (torch.cat(part) for part in zip(*parts, strict=True))
            if exact(likelihood):
                scale = (covariance[:, 0, 0] + (self.noise_ or 0.0) ** 2).sqrt()
                return TorchNormal(mean[:, 0], scale, validate_args=False)
            return predictive(likelihood, mean, covariance, torch.from_numpy(self.shared_))

    @property
    def _score(self) -> Literal["log_prob", "mean"]:
        return "log_prob" if self._likelihood().labels else "mean"

    def _scores(self, x: Tensor) -> Tensor:
        likelihood = self._likelihood()
        if likelihood.labels:
            return log_of_classes(self._predictive(x))
        mean = self._posterior.location(x) if exact(likelihood) else point(self._predictive(x))
        return mean.reshape(len(x), -1)

    def predict_interval(self, X: Any, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """The central interval that holds y with probability `level`: arrays (lower, upper) shaped like y."""
        check_level(level)
        tail = (1 - level) / 2
        parts = (self._predictive(part) for part in self._points(X).split(CHUNK))
        bounds = torch.cat([torch.stack([quantile(part, p) for p in (tail, 1 - tail)]) for part in parts], 1)
        return bounds[0].numpy(), bounds[1].numpy()

    @available_if(_of_labels)
    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each class, (n, classes), in the order of `classes_`."""
        return self._probabilities(X)

    def posterior(self, X: Any) -> MultivariateNormal:
        """The joint distribution of f at all rows: event (n,); with k latent functions (n·k,), a row's k together."""
        mean, root = self._joint(X)
        return MultivariateNormal(mean.reshape(-1), scale_tril=root, validate_args=False)

    def sample(self, X: Any, n: int = 1, random_state: Any = None) -> np.ndarray:
        """Draw n times targets y at all rows together, (n, rows): y ~ likelihood(f), with f drawn as one function.

        Draws of the function f itself are `posterior(X).sample()`.
        """
        count = count_of(n)
        mean, root = self._joint(X)
        first, second = spread(self._seed(random_state), 2)
        generator = torch.Generator().manual_seed(first)
        noise = torch.randn(count, mean.numel(), generator=generator, dtype=torch.float64)
        paths = mean + (noise @ root.mT).reshape(count, *mean.shape)
        shared = torch.from_numpy(self.shared_)
        with isolated(second):
            eta = torch.cat([paths, shared.expand(*paths.shape[:2], -1)], -1)
            drawn = self._likelihood().distribution(eta).sample().numpy()
        return self.classes_[drawn.astype(int)] if self._likelihood().labels else drawn

    def log_prob(self, X: Any, y: Any) -> np.ndarray:
        """log p(y | x, data) of each row by itself; a missing target counts 0."""
        likelihood, targets = self._likelihood(), self._targets(X, y)
        missing = likelihood.missing(targets)
        gap = missing.reshape(-1, *(1 for _ in range(likelihood.event_dim)))
        filled = torch.where(gap, likelihood.placeholder(targets), targets)
        pairs = zip(self._points(X).split(CHUNK), filled.split(CHUNK), strict=True)
        log_prob = torch.cat([self._predictive(rows).log_prob(own) for rows, own in pairs])
        return torch.where(missing, 0.0, log_prob).numpy()

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² of the mean, or the accuracy of the labels, over the targets that are not missing."""
        likelihood, targets = self._likelihood(), self._targets(X, y)
        weight, seen = as_weights(sample_weight, targets), ~likelihood.missing(targets).numpy()
        guess = self._probabilities(X).argmax(-1) if likelihood.labels else self.predict(X)
        return quality(targets.numpy(), guess, seen, weight, likelihood.labels)

    @property
    def noise_(self) -> float | None:
        """σ of a normal likelihood; None for others."""
        self._check_fitted()
        likelihood = self._likelihood()
        if not exact(likelihood):
            return None
        known = likelihood.known_scale()
        return float(np.exp(self.hyperparameters_[0])) if known is None else known

    @property
    def mean_(self) -> np.ndarray:
        """The constant mean of each latent function."""
        self._check_fitted()
        posterior = self._posterior
        return posterior.means.numpy() if isinstance(posterior, LaplacePosterior) else np.array([posterior.mean])

    @property
    def shared_(self) -> np.ndarray:
        """The numbers of the likelihood that do not depend on x, as it holds them: log σ for Normal."""
        self._check_fitted()
        return (
            self._posterior.shared.numpy() if isinstance(self._posterior, LaplacePosterior) else self.hyperparameters_
        )

    # --- inside -------------------------------------------------------------------------------------------------
    @property
    def _affine(self) -> bool:
        return self.kernel_.affine and exact(self._likelihood())

    @property
    def _work(self) -> float:
        return float(self._size**2)

    @property
    def _size(self) -> int:
        """Rows of the matrix that an answer is solved with."""
        return len(self.X_train_ if self.inducing_ is None else self.inducing_)

    def _kernel(self, likelihood: Likelihood, y: Tensor, weight: Tensor) -> Kernel:
        if not isinstance(self.kernel, str) or self.kernel != "auto":
            return as_spec(self.kernel, Kernel, "kernel")
        _, units = likelihood.baseline(y, weight)
        return RBF() if likelihood.labels else float(units[0]) ** 2 * RBF()

    def _likelihood(self) -> Likelihood:
        likelihood = as_spec(self.likelihood, Likelihood, "likelihood")
        return likelihood.bind(Target(classes=len(self.classes_))) if "classes_" in self.__dict__ else likelihood

    def _target(self, likelihood: Likelihood, y: Tensor) -> Target:
        return Target(classes=len(self.classes_)) if likelihood.labels else likelihood.target(y)

    def _points(self, X: Any) -> Tensor:
        self._check_fitted()
        x = check_squares(as_rows(self, X, reset=False).double())
        if x.shape[1:] != self.X_train_.shape[1:]:
            raise DataError(
                f"X has rows of shape {tuple(x.shape[1:])}; the model was fitted on {self.X_train_.shape[1:]}."
            )
        return x

    def _targets(self, X: Any, y: Any) -> Tensor:
        return read_targets(y, len(self._points(X)), self._likelihood(), self.__dict__.get("classes_"))

    def _probabilities(self, X: Any) -> np.ndarray:
        return of_classes(self.predict_dist(X)).numpy()

    def _joint(self, X: Any) -> tuple[Tensor, Tensor]:
        """Means (n, k), and a root of the covariance of all numbers together."""
        x = self._points(X)
        with threads_for(max(factorisation(len(x)), len(x) * self._size**2)):
            mean, covariance = self._posterior.joint(x)
            return mean, root_of(covariance, float(self._posterior.kernel.diagonal(x).detach().mean()))

    def _check_arguments(self) -> None:
        if self.mean not in ("constant", "zero"):
            raise SpecError(f'GaussianProcess(mean={self.mean!r}): mean must be "constant" or "zero".')
        if not isinstance(self.starts, int | np.integer) or isinstance(self.starts, bool) or self.starts < 1:
            raise SpecError(f"GaussianProcess(starts={self.starts!r}): starts must be a positive integer.")
        number = isinstance(self.inducing, int | np.integer) and not isinstance(self.inducing, bool)
        if not (self.inducing is None or self.inducing == "auto" or (number and self.inducing >= 1)):
            raise SpecError(
                f"GaussianProcess(inducing={self.inducing!r}): inducing must be a positive integer, how many inducing "
                'points, or "auto" or None.'
            )

    # --- files --------------------------------------------------------------------------------------------------
    def _state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        values, tensors = super()._state()
        return values | {"kernel_": self.kernel_.to_json()}, tensors

    def _restore(self, learned: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        values = dict(learned)
        self.kernel_ = as_spec(Spec.from_json(values.pop("kernel_")), Kernel, "kernel_")
        super()._restore(values, tensors)
        arrays = (self.X_train_, self.y_train_, self.weight_train_)
        x, y, weight = (torch.from_numpy(array) for array in arrays)
        self._likelihood().check(y, "y_train_")
        refuse_many(len(x) if self.inducing_ is None else len(self.inducing_), 1, "the file has too many")
        module = self._built(self.kernel_, x, 0)
        load_hyperparameters(module, torch.from_numpy(self.kernel_hyperparameters_))
        problem = self._problem(module, self._likelihood(), x, y, weight)
        if len(self.hyperparameters_) != len(problem.start()[0]):
            raise ModelFileError(
                f"GaussianProcess's hyperparameters_ has {len(self.hyperparameters_)} entries in this file."
            )
        self._posterior = self._solved(problem)
        noise = 1.0 if self.noise_ is None else self.noise_
        if not 0 < noise < math.inf or not math.isfinite(self._posterior.log_evidence):
            raise ModelFileError("The file does not fit its own specs: its hyperparameters give no finite evidence.")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        if _of_labels(self):
            likelihood = as_spec(self.likelihood, Likelihood, "likelihood")
            several = bool(likelihood.support.check(torch.tensor(2)).all())
            tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags(multi_class=several)
        else:
            tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
        return tags
