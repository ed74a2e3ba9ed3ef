"""What a hidden Markov model knows of the states of sequences: paths, posteriors, forecasts, what is missing."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.distributions import Categorical

from ...core.draws import count_of
from ...core.errors import DataError, SpecError
from ...core.random import isolated
from ...core.threads import threads_for
from ...data.rows import Ragged
from ...data.sequences import read_sequences
from ...inference.latent.latent import Params
from ..averaged import NEGLIGIBLE, Averaged, completed, side_by_side, weights_given
from ..emissions import Emission
from ..emissions.mixture import rebuild
from . import filter_states, forward_backward, sample_paths, sample_states, viterbi
from .emission import state_means

__all__: list[str] = []

ROWS = 1024
"""Steps whose missing values are filled at once."""


class _HiddenStates(Averaged):
    """Answers of a fitted chain: initial π (K,), transition A (K, K), and the emission p(xₜ | zₜ).

    Each takes one sequence, a list of them, or rows with their `lengths`, and answers in the same form.
    """

    initial_: np.ndarray
    transition_: np.ndarray
    emission_: dict[str, Any]
    _learned_emission: dict[str, np.ndarray]

    def decode(
        self,
        X: Any,
        lengths: Any = None,
        *,
        method: Literal["viterbi", "posterior"] = "viterbi",
        return_log_prob: bool = False,
    ) -> Any:
        """States (T,): of the most probable path ("viterbi"), or the most probable of each step ("posterior").

        With `return_log_prob` also log p(x, states) of each sequence.
        """
        if method not in ("viterbi", "posterior"):
            raise SpecError(f'method={method!r}: decode by "viterbi" or "posterior".')
        data, log_emission = self._emitted(X, lengths)
        chain = (self.initial_, self.transition_, log_emission, data.offsets.numpy())
        if method == "viterbi":
            path, log_prob = viterbi(*chain)
            if (log_prob == -np.inf).any():
                self._refuse(filter_states(*chain)[2])
        else:
            path = self._smoothed(data, log_emission).argmax(1)
            log_prob = _path_log_prob(path, *chain)
        states = data.parted(path)
        return (states, log_prob) if return_log_prob else states

    def predict(self, X: Any, lengths: Any = None) -> Any:
        """The most probable path of states, by Viterbi: (T,) for each sequence."""
        return self.decode(X, lengths)

    def posterior(self, X: Any, lengths: Any = None) -> Any:
        """The distribution of the state of each step given its sequence: a torch `Categorical` with batch (T,).

        Of a list of sequences, a list.
        """
        probabilities = self.predict_proba(X, lengths)
        if isinstance(probabilities, list):
            return [Categorical(torch.from_numpy(own), validate_args=False) for own in probabilities]
        return Categorical(torch.from_numpy(probabilities), validate_args=False)

    def predict_proba(self, X: Any, lengths: Any = None) -> Any:
        """p(zₜ = k | x), given the whole sequence: (T, K) for each sequence."""
        data, log_emission = self._emitted(X, lengths)
        return data.parted(self._smoothed(data, log_emission))

    def filter(self, X: Any, lengths: Any = None) -> Any:
        """p(zₜ = k | x₁ … xₜ), given what was seen until then: (T, K) for each sequence."""
        data, _, filtered, impossible = self._filtered(X, lengths)
        self._refuse(impossible)
        return data.parted(filtered)

    def forecast_states(self, X: Any, steps: int, lengths: Any = None) -> Any:
        """p(z_{T+h} = k | x) for h = 1 … `steps` after each sequence: (steps, K), or (n, steps, K) for several."""
        if not isinstance(steps, int | np.integer) or steps < 1:
            raise DataError(f"steps={steps!r}: how far to look ahead must be an integer above 0.")
        data, _, filtered, impossible = self._filtered(X, lengths)
        self._refuse(impossible)
        now, following = filtered[data.offsets.numpy()[1:] - 1], []
        for _ in range(steps):
            now = now @ self.transition_
            following.append(now)
        ahead = np.stack(following, 1)
        return ahead if data.listed or lengths is not None else ahead[0]

    def forecast(self, X: Any, steps: int, lengths: Any = None) -> Any:
        """The mean of each column, 1 … `steps` steps after each sequence: (steps, d), or (n, steps, d) for several."""
        means = self.means_
        return self.forecast_states(X, steps, lengths) @ means

    def sample(
        self,
        n: int = 1,
        condition: Any = None,
        random_state: Any = None,
        *,
        length: int = 100,
        return_hidden: bool = False,
    ) -> Any:
        """n new sequences of `length` steps, (n, length, d); with `return_hidden` also their states (n, length).

        The last axis is there for single numbers, too: with d = 1 a sequence is (length, 1), whatever was fitted.

        With a sequence as `condition`, what may follow it.
        """
        self._check_fitted()
        shape, seed = (count_of(n), count_of(length, "length")), self._seed(random_state)
        first = self.initial_
        if condition is not None:
            data, _, filtered, impossible = self._filtered(condition, None)
            self._refuse(impossible)
            if len(data) > 1:
                raise DataError(f"condition has {len(data)} sequences; a sample continues one.")
            first = filtered[-1] @ self.transition_
        uniform = np.random.default_rng(seed).random(shape)
        chosen, draws = self._members_of(shape[0], seed), self._draws()
        if condition is not None or chosen is None or draws is None:
            states, params = sample_states(first, self.transition_, uniform), self._emission_params()
            emitting = states
        else:  # a chain of its own for each sequence
            initial, transition = (draws[0][name].numpy() for name in ("chain.initial", "chain.transition"))
            own = zip(chosen.tolist(), uniform, strict=True)
            states = np.concatenate([sample_states(initial[s], transition[s], row[None]) for s, row in own])
            params = side_by_side({name: value for name, value in draws[0].items() if not name.startswith("chain.")})
            emitting = states + self.n_states * chosen.numpy()[:, None]
        with isolated(seed):
            drawn = rebuild(self.emission_).sample(params, torch.from_numpy(emitting.ravel()))
        rows = drawn.numpy().reshape(*states.shape, -1)
        return (rows, states) if return_hidden else rows

    def impute(self, X: Any, draws: int | None = None, random_state: Any = None, *, lengths: Any = None) -> Any:
        """X with each missing value at its mean given its whole sequence (of labels, the most probable): (T, d).

        With `draws`, so many draws of it instead: (draws, T, d) for each sequence.
        """
        data, chains, emission = self._sequences(X, lengths), self._chains()[0], rebuild(self.emission_)
        weights = weights_given(*self._log_prob_by_member(data))
        if draws is None:
            return data.parted(_expected(emission, data, chains, weights).numpy())
        count, seed = count_of(draws, "draws"), self._seed(random_state)
        random = np.random.default_rng(seed)

        def fill(member: int, rows: Ragged) -> np.ndarray:
            initial, transition, log_prob, offsets = chains[member].seen(emission, rows)
            filtered = filter_states(initial, transition, log_prob, offsets)[1]
            states = sample_paths(filtered, transition, offsets, random.random(len(rows.values)))
            return emission.filled(chains[member].emission, rows.values, torch.from_numpy(states)).numpy()

        with isolated(seed):
            return data.parted(completed(data, weights, count, seed, fill), axis=1)

    @property
    def means_(self) -> np.ndarray:
        """The mean of each column in each state, (K, d)."""
        self._check_fitted()
        return state_means(rebuild(self.emission_), self._emission_params())

    # --- helpers ------------------------------------------------------------------------------------------------
    def _chains(self) -> tuple[list[_Chain], Tensor]:
        """The chains of all draws, or the one that there is, and the logarithms of their weights."""
        draws = self._draws()
        if draws is None:
            return [_Chain(self.initial_, self.transition_, self._emission_params())], torch.zeros(1).double()
        emission, (members, log_weights) = rebuild(self.emission_), draws
        own = {name: value for name, value in members.items() if not name.startswith("chain.")}
        parts = ((members["chain.initial"][s], members["chain.transition"][s], s) for s in range(len(log_weights)))
        return [
            _Chain(start.numpy(), move.numpy(), emission.finished({name: value[s] for name, value in own.items()}))
            for start, move, s in parts
        ], log_weights

    def _emission_params(self) -> Params:
        return {name: torch.from_numpy(value) for name, value in self._learned_emission.items()}

    def _log_prob_by_member(self, data: Ragged) -> tuple[Tensor, Tensor]:
        """log p(x | θₛ) of each sequence, (n, S), and the logarithms of the weights of draws, (S,)."""
        emission, (chains, log_weights) = rebuild(self.emission_), self._chains()
        evidence = [torch.from_numpy(filter_states(*chain.seen(emission, data))[0]) for chain in chains]
        return torch.stack(evidence, -1), log_weights

    def _sequences(self, X: Any, lengths: Any) -> Ragged:
        """The sequences that a question is about."""
        self._check_fitted()
        data = read_sequences(self, X, lengths, reset=False)
        rebuild(self.emission_).check(data.values)
        return data

    def _emitted(self, X: Any, lengths: Any) -> tuple[Ragged, np.ndarray]:
        """The sequences, and log p(xₜ | k) of each step, (T, K)."""
        data, params = self._sequences(X, lengths), self._emission_params()
        chain = _Chain(self.initial_, self.transition_, params)
        return data, chain.seen(rebuild(self.emission_), data)[2]

    def _filtered(self, X: Any, lengths: Any) -> tuple[Ragged, np.ndarray, np.ndarray, np.ndarray]:
        data, log_emission = self._emitted(X, lengths)
        return data, *filter_states(self.initial_, self.transition_, log_emission, data.offsets.numpy())

    def _smoothed(self, data: Ragged, log_emission: np.ndarray) -> np.ndarray:
        smoothed = forward_backward(self.initial_, self.transition_, log_emission, data.offsets.numpy())
        self._refuse(smoothed.impossible)
        return smoothed.posterior

    def _refuse(self, impossible: np.ndarray) -> None:
        """A sequence of probability 0 has no posterior."""
        if (impossible >= 0).any():
            place = int(np.flatnonzero(impossible >= 0)[0])
            raise DataError(
                f"sequence {place} has probability 0 (no state is possible at step {impossible[place]}), so that "
                "nothing is known of its states; log_prob tells which sequences are possible."
            )


class _Chain(NamedTuple):
    """The parameters of one draw."""

    initial: np.ndarray
    transition: np.ndarray
    emission: Params

    def seen(self, emission: Emission, data: Ragged) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """What the recursions take: the chain, log p(xₜ | k) of each step, and where sequences start."""
        params = {name: value.unsqueeze(0) for name, value in self.emission.items()}
        with threads_for(data.values.numel() * len(self.initial) * data.values.shape[1]):
            log_prob = emission.log_prob(params, data.values)[:, 0].contiguous()
        return self.initial, self.transition, log_prob.numpy(), data.offsets.numpy()


def _expected(emission: Emission, data: Ragged, chains: list[_Chain], weights: Tensor) -> Tensor:
    """Steps (T, d) with missing values at E[missing | seen], over all draws, which count by their weights (n, S)."""
    gaps = data.values.isnan().any(1).nonzero()[:, 0]
    own = weights[data.owner[gaps]]  # (m, S)
    counting = [s for s, most in enumerate(weights.amax(0).tolist()) if most > NEGLIGIBLE]
    shares = []
    for s in counting:
        posterior = torch.from_numpy(forward_backward(*chains[s].seen(emission, data)).posterior)
        shares.append(own[:, s, None] * posterior[gaps])
    params = [chains[s].emission for s in counting]
    together = side_by_side({name: torch.stack([one[name] for one in params]) for name in params[0]})
    filled = data.values.double().clone()
    for rows, share in zip(gaps.split(ROWS), torch.cat(shares, 1).split(ROWS), strict=True):
        some = filled[rows]
        filled[rows] = torch.where(some.isnan(), emission.expected(together, some, share), some)
    return filled


def _path_log_prob(
    path: np.ndarray, initial: np.ndarray, transition: np.ndarray, log_emission: np.ndarray, offsets: np.ndarray
) -> np.ndarray:
    """log p(x, z) of each sequence."""
    with np.errstate(divide="ignore"):
        steps = np.concatenate([[0.0], np.log(transition[path[:-1], path[1:]])])
        steps[offsets[:-1]] = np.log(initial[path[offsets[:-1]]])
    return np.add.reduceat(steps + log_emission[np.arange(len(path)), path], offsets[:-1])
