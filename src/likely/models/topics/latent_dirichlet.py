"""LatentDirichlet: documents as mixtures of topics, topics as distributions over words.

φ_k ~ Dirichlet(β, …, β),    θ_d ~ Dirichlet(α),    z ~ θ_d,    word ~ φ_z
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from scipy import sparse
from sklearn.base import TransformerMixin
from torch.distributions import Dirichlet

from ...core.declared import AMOUNT, COUNT, NUMBERS, SETTLED, Array, Arrays, Range, Values, maybe, one_of
from ...core.draws import count_of, form_of, in_form
from ...core.errors import ConvergenceWarning, DataError, LikelyWarning, SpecError
from ...core.learned import Learned
from ...core.random import seed_of
from ...core.spec import as_spec
from ...core.validation import as_weights
from ...inference import Inference, VariationalBayes
from ...inference.latent.topics import _TopicInference
from ...inference.objective import Objective, refuse
from .ascent import Topics, infer, start, step
from .corpus import Corpus
from .documents import read_corpus
from .lanes import padded
from .problem import TopicProblem
from .variational import log_predictive, topic_bound

__all__ = ["LatentDirichlet"]

PASSES, TOL = 500, 1e-5
"""How far a document is inferred once the topics stand: mean change of γ."""


COUNTED = Range("above 0 and at most 1e100", lambda a: bool(((a > 0) & (a <= 1e100)).all()))
"""Parameters of a Dirichlet distribution: counts, of which larger ones have no finite products."""


class _Words(Objective):
    """What topics are learned from."""

    offers = frozenset({"tokens"})
    name = "LatentDirichlet"


class LatentDirichlet(TransformerMixin, Learned):
    """Latent Dirichlet allocation: `n_components` topics behind counts of words.

    X is a table of counts (n, V), dense, sparse or a frame, or a plain list of documents, each a list of token ids.
    `inference` is `VariationalBayes()` (all documents at once, or online in batches) or `CollapsedGibbs()`.
    `document_prior` α and `topic_prior` β are 1/`n_components` if None, as in scikit-learn; α may be one number for
    each topic, and is learned from the documents with `learn_prior`. Counts are whole: weights such as tf-idf have no
    likelihood here. A document without words is allowed and says nothing: its proportions are the prior's mean.

    Learns `components_` (K, V), the Dirichlet parameters of the topics (for a Gibbs chain β plus its average counts),
    `topic_word_`, their mean, `document_prior_` (α), and `history_`: the bound of each iteration, or for a chain the
    log joint of words and topics at every tenth sweep.

    >>> X = np.array([[5, 4, 0, 0], [3, 4, 0, 0], [0, 0, 4, 3], [0, 0, 3, 6]])
    >>> model = LatentDirichlet(2, random_state=0).fit(X)
    >>> sorted(model.top_words(2, ["cat", "dog", "stock", "bond"]))
    [['bond', 'stock'], ['cat', 'dog']]
    >>> model.transform(X).round(1).max(1)
    array([0.9, 0.9, 0.9, 0.9])
    """

    _arrays: ClassVar[Arrays] = {"components_": Array("K D", COUNTED), "document_prior_": Array("K", COUNTED)}
    _values: ClassVar[Values] = {
        "topic_prior_": AMOUNT,
        "history_": NUMBERS,
        "n_iter_": COUNT,
        "converged_": maybe(SETTLED),
        "n_steps_": COUNT,
        "n_documents_": COUNT,
        "form_": one_of("array", "sparse", "documents", "pandas", "polars"),
    }
    log_prob_kind_: ClassVar[str] = "bound"

    def __init__(
        self,
        n_components: int = 10,
        inference: Inference | str = VariationalBayes(),  # noqa: B008 (specs are frozen)
        document_prior: float | Sequence[float] | None = None,
        topic_prior: float | None = None,
        learn_prior: bool = False,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.inference = inference
        self.document_prior = document_prior
        self.topic_prior = topic_prior
        self.learn_prior = learn_prior
        self.random_state = random_state
        self.verbose = verbose

    # --- learning -----------------------------------------------------------------------------------------------
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the topics of the documents; `sample_weight` counts a document so many times."""
        self._forget()
        inference = self._method()
        prior, smooth = self._priors()
        corpus = read_corpus(self, X, reset=True)
        weight = as_weights(sample_weight, corpus.starts[1:])
        counted = None if weight is None else weight.numpy()
        if counted is not None and not counted.all():  # a document without weight is not there
            corpus, counted = corpus.take(np.flatnonzero(counted)), counted[counted > 0]
        _check_words(corpus)
        self.form_, seed, learn = _form(X), seed_of(self.random_state), bool(self.learn_prior)
        problem = TopicProblem(corpus, len(prior), prior, smooth, learn, seed, bool(self.verbose), counted)
        posterior = inference.fit(problem)
        if posterior.converged is False:
            warnings.warn(
                f"The bound still grew after {posterior.iterations} iterations; raise max_iter or tol of {inference}.",
                ConvergenceWarning,
                stacklevel=2,
            )
        self.components_, self.document_prior_ = posterior.components, posterior.document_prior
        self.topic_prior_, self.history_, self.n_iter_ = smooth, posterior.trace, posterior.iterations
        self.converged_, self.n_steps_, self.n_documents_ = posterior.converged, 0, corpus.documents
        return self

    def _method(self) -> _TopicInference:
        """The inference, which must be one that reads the words of documents."""
        method = as_spec(self.inference, Inference, "inference")
        refuse(method, _Words())
        assert isinstance(method, _TopicInference)
        return method

    def partial_fit(self, X: Any, y: Any = None, *, total_documents: int | None = None) -> Self:
        """One online step on a batch of documents (or one for each `batch_size` of them), as in `VariationalBayes`.

        `total_documents` is the size of the whole collection; if None, it is what was seen so far.
        """
        inference = self._method()
        if not isinstance(inference, VariationalBayes):
            raise SpecError(
                f"partial_fit is a step of online VariationalBayes; {inference} needs all documents at once: use fit."
            )
        new = not self.__sklearn_is_fitted__()
        prior, smooth = self._priors()
        corpus = read_corpus(self, X, reset=new)
        _check_words(corpus)
        if new:
            random = np.random.default_rng(seed_of(self.random_state))
            self.components_ = start(len(prior), corpus.size, random)
            self.document_prior_, self.topic_prior_ = prior, smooth
            self.history_, self.n_iter_, self.n_steps_, self.n_documents_ = [], 0, 0, 0
            self.form_ = _form(X)
        topics = Topics(self.components_, self.document_prior_, self.topic_prior_, self.n_steps_)
        rate = (
            inference.passes_in_batches,
            inference.learning_offset,
            inference.learning_decay,
            bool(self.learn_prior),
        )
        size = inference.batch_size or corpus.documents
        for first in range(0, corpus.documents, size):
            batch = corpus.take(slice(first, first + size))
            self.n_documents_ += batch.documents
            step(topics, batch, total_documents or self.n_documents_, *rate)
        posterior = topics.posterior([], None, 0)
        self.converged_ = posterior.converged
        self.components_, self.document_prior_ = posterior.components, posterior.document_prior
        self.n_steps_ = topics.steps
        self.n_iter_ += 1
        return self

    # --- topics -------------------------------------------------------------------------------------------------
    @property
    def topic_word_(self) -> np.ndarray:
        """The mean of each topic (K, V): rows sum to 1."""
        self._check_fitted()
        return self.components_ / self.components_.sum(1, keepdims=True)

    def top_words(self, n: int = 10, vocabulary: Sequence[str] | None = None) -> list[list[Any]]:
        """The `n` most probable words of each topic: names from `vocabulary` or the columns of a frame, or else ids."""
        self._check_fitted()
        names = vocabulary if vocabulary is not None else getattr(self, "feature_names_in_", None)
        if names is not None and len(names) != self.components_.shape[1]:
            raise DataError(
                f"vocabulary has {len(names)} names; the model knows {self.components_.shape[1]} words, one name each."
            )
        order = np.argsort(-self.topic_word_, axis=1, kind="stable")[:, :n]
        return [[int(word) if names is None else str(names[word]) for word in row] for row in order]

    def sample(
        self,
        n: int = 1,
        random_state: Any = None,
        *,
        length: Any = 100,
        return_hidden: bool = False,
    ) -> Any:
        """n new documents of `length` words each (one number, or one for each), in the form of those fitted.

        That is a table of counts (n, V), dense, sparse or a frame, or a list of arrays of token ids. With
        `return_hidden` also the proportions of the topics in each, (n, K).
        """
        self._check_fitted()
        random, count = np.random.default_rng(self._seed(random_state)), count_of(n)
        lengths = np.asarray(length)
        if lengths.dtype.kind not in "iu" or lengths.min(initial=0) < 0 or lengths.shape not in ((), (count,)):
            raise DataError(f"length={length!r} must be an integer from 0, or one for each of {count} documents.")
        theta = random.dirichlet(self.document_prior_, count)
        topics = self.topic_word_
        sizes = np.broadcast_to(lengths, (count,))
        rows = [random.multinomial(size, proportions @ topics) for size, proportions in zip(sizes, theta, strict=True)]
        counts = np.array(rows, dtype=np.int64).reshape(count, topics.shape[1])
        documents: Any
        if self.form_ == "sparse":
            documents = sparse.csr_array(counts)
        elif self.form_ == "documents":
            documents = [random.permutation(np.repeat(np.arange(len(row)), row)) for row in counts]
        else:
            documents = in_form(counts, self.form_, getattr(self, "feature_names_in_", None))
        return (documents, theta) if return_hidden else documents

    # --- documents ----------------------------------------------------------------------------------------------
    def transform(self, X: Any) -> np.ndarray:
        """The proportions of the topics in each document (n, K): the mean of `posterior`."""
        gamma, _ = self._infer(self._read(X))
        return gamma / gamma.sum(1, keepdims=True)

    def posterior(self, X: Any) -> Dirichlet:
        """The variational posterior of each document's proportions, Dirichlet(γ_d), given the topics."""
        gamma, _ = self._infer(self._read(X))
        return Dirichlet(torch.from_numpy(gamma))

    def log_prob(self, X: Any) -> np.ndarray:
        """A lower bound (the variational one, ELBO) on the log probability of each document's words in their order.

        Under `CollapsedGibbs` it bounds log p(w_d | φ̂, α); under `VariationalBayes` topics enter by E[log φ].
        """
        return self._infer(self._read(X))[1]

    def perplexity(self, X: Any, method: Literal["completion", "bound"] = "completion", random_state: Any = 0) -> float:
        """exp(− mean log probability of a word); smaller is better, and V is that of a model that knows nothing.

        "completion" scores held-out documents: half of the words of each (at random, by `random_state`) say what it is
        about, the others are predicted by Σ_k E[θ_dk] φ_kv. "bound" is exp(−bound / words) of whole documents with
        the topics' part of the bound, as scikit-learn's `perplexity`: larger than the truth, and comparable between
        models of the same inference only.
        """
        corpus = self._read(X)
        if not len(corpus.words):
            raise DataError("X has no words, so that there is nothing to score.")
        if method == "bound":
            inference = self._method()
            bound = self._infer(corpus)[1].sum()
            if inference.random_topics:
                words_first = np.ascontiguousarray(self.components_.T)
                bound += topic_bound(words_first, self.topic_prior_, len(self.components_))
            return float(np.exp(-bound / corpus.counts.sum()))
        if method != "completion":
            raise SpecError(f'method={method!r} is unknown; use "completion" or "bound".')
        seen, scored = corpus.halves(seed_of(random_state))
        gamma, _ = self._infer(seen)
        theta = padded(gamma / gamma.sum(1, keepdims=True), 0.0)
        topics = padded(np.ascontiguousarray(self.topic_word_.T), 0.0)
        total = log_predictive(scored.starts, scored.words, scored.counts, topics, theta)
        return float(np.exp(-total / scored.counts.sum()))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The mean of `log_prob`, a lower bound, over the documents; `perplexity` scores held-out words."""
        log_prob = self.log_prob(X)
        weight = as_weights(sample_weight, log_prob)
        return float(np.average(log_prob, weights=None if weight is None else weight.numpy()))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """topic0, topic1, …"""
        self._check_fitted()
        return np.array([f"topic{k}" for k in range(len(self.components_))], dtype=object)

    # --- within -------------------------------------------------------------------------------------------------
    def _read(self, X: Any) -> Corpus:
        self._check_fitted()
        return read_corpus(self, X, reset=False)

    def _infer(self, corpus: Corpus) -> tuple[np.ndarray, np.ndarray]:
        weights = self._method().weights(self.components_)
        return infer(corpus, weights, self.document_prior_, PASSES, TOL)

    def _dimensions(self) -> dict[str, Any]:
        return super()._dimensions() | {"K": self.n_components}

    def _check_arguments(self) -> None:
        self._method()
        self._priors()

    def _priors(self) -> tuple[np.ndarray, float]:
        """α (K,) and β."""
        size = self.n_components
        if not isinstance(size, int | np.integer) or isinstance(size, bool) or size < 1:
            raise SpecError(f"LatentDirichlet(n_components={size!r}): n_components must be a positive integer.")
        priors = []
        for name, shape in (("document_prior", (size,)), ("topic_prior", ())):
            given = getattr(self, name)
            try:
                value = np.asarray(1.0 / size if given is None else given, dtype=np.float64)
                prior = np.broadcast_to(value, shape).copy()
            except (TypeError, ValueError):
                prior = np.full(shape, np.nan)
            if not np.all((prior > 0) & np.isfinite(prior)):
                needs = f"a positive number or {size} of them" if shape else "a positive number"
                raise SpecError(f"LatentDirichlet({name}={given!r}): {name} must be {needs}, or None.")
            priors.append(prior)
        return priors[0], float(priors[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags


def _check_words(corpus: Corpus) -> None:
    """Some document must have words; a note says which have none."""
    empty = np.diff(corpus.starts) == 0
    if empty.all():
        raise DataError(
            f"X has no words: all counts of its {corpus.documents} documents are 0; there is nothing to learn from."
        )
    if empty.any():
        warnings.warn(
            f"{empty.sum()} of {corpus.documents} documents have no words (the first is document {empty.argmax()}); "
            "they say nothing about the topics, and their proportions are the mean of the prior.",
            LikelyWarning,
            stacklevel=3,
        )


def _form(X: Any) -> str:
    """The kind of documents that X holds."""
    if isinstance(X, list | tuple):
        return "documents"
    return "sparse" if sparse.issparse(X) else form_of(X)
