"""Changed model files of every estimator, asked in a process of their own: `python fuzz_files.py SEED COUNT NAME …`.

Each line that begins with "FAIL" is a file after which `load` raised another error than `ModelFileError`, or an answer
was not finite or raised an error that is not the library's. "AT" names the file that is looked at, so that the one
which ends the process is known.
"""

from __future__ import annotations

import copy
import faulthandler
import json
import math
import resource
import signal
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import torch

import likely
from likely import inference, kernels, likelihoods, networks
from likely.core.errors import LikelyError, ModelFileError
from likely.core.files import read_file, write_file
from likely.data.graph import Graph
from likely.models.forecasting import ExponentialSmoothing, Naive
from likely.models.generative import Gradient

SECONDS = 20
"""Of CPU time for one file; all of them are small."""
MEMORY = 16 * 2**30

RANDOM = np.random.default_rng(0)
ROWS = RANDOM.normal(size=(24, 3))
LABELS = np.array(["a", "b", "c"])[np.arange(24) % 3]
TWO = np.array([0, 1])[np.arange(24) % 2]
NUMBERS = ROWS @ [1.0, -1.0, 0.5] + RANDOM.normal(size=24)
COUNTS = RANDOM.poisson(3.0, size=(24, 3))
SIGNS = np.where(RANDOM.random((4, 6)) < 0.5, -1, 1)
SEQUENCES = [ROWS[:5, :2], ROWS[5:8, :2], ROWS[8:12, :2], ROWS[12:20, :2]]
GRAPHS = [Graph(ROWS[first : first + 3], [[0, 1, 2], [1, 2, 0]]) for first in range(0, 24, 3)]
IMAGES = RANDOM.normal(size=(12, 1, 6, 6))
BOXES = [[[0, 0, 4, 3], [2, 2, 6, 6]] if image % 2 else [] for image in range(12)]
STATES = [{"rain": "no", "wet": "no"}, {"rain": "yes", "wet": "yes"}, {"rain": "no", "wet": "yes"}] * 3
NAMES = ["one", "two", "three"]
WORDS = ["to be or not to be", "that is the question", "so be it"]


def quick(**more):
    return inference.MAP(epochs=1, batch_size=8, **more)


def frame():
    import pandas as pd

    return pd.DataFrame(ROWS, columns=NAMES).assign(colour=LABELS)


def examples():
    """By the name of the model: models to fit, with X and, for supervised ones, y."""
    deep = networks.MLP((4,), activation="tanh", dropout=0.2, norm="batch")
    mixed = [likelihoods.Normal(), likelihoods.Poisson(), likelihoods.Categorical()]
    columns = np.column_stack([ROWS[:, 0], COUNTS[:, 0], np.arange(24) % 3])
    few = {"chains": 2, "draws": 8, "warmup": 8}
    small = {"inference": quick(), "random_state": 0}
    seeded = {"random_state": 0}
    return {
        "Autoencoder": [(likely.Autoencoder(1, **small), ROWS, None), (likely.Autoencoder(1, **small), IMAGES, None)],
        "Autoregressive": [
            (likely.Autoregressive(network=networks.MLP((4,)), **small), ROWS, None),
            (likely.Autoregressive(mixed, network=networks.MLP((4,)), **small), columns, None),
        ],
        "BayesianNetwork": [(likely.BayesianNetwork([("rain", "wet")], smoothing=1), STATES, None)],
        "Classifier": [
            (likely.Classifier(), ROWS, LABELS),
            (likely.Classifier(network=deep, inference=quick()), ROWS, LABELS),
            (likely.Classifier(network=deep, inference=inference.MCDropout(draws=3, by=quick())), ROWS, LABELS),
            (likely.Classifier(inference=inference.Laplace(by=quick())), ROWS, TWO),
            (likely.Classifier(inference=inference.HMC(**few), prior="normal"), ROWS, TWO),
            (likely.Classifier(network=networks.LSTM(2), inference=quick()), SEQUENCES, [0, 1, 0, 1]),
            (likely.Classifier(network=networks.GCN((2,), level="graph"), inference=quick()), GRAPHS, [0, 1] * 4),
            (likely.Classifier(network=networks.ConvNet((2,), hidden=(2,)), inference=quick()), IMAGES, [0, 1] * 6),
            (likely.Classifier(), WORDS, [0, 1, 0]),
            (likely.Classifier(network=networks.LSTM(2), inference=quick(), tokens="forms(1)"), WORDS, [0, 1, 0]),
        ],
        "Detector": [
            (likely.Detector(networks.ResNet((2,), 1, dropout=0.1), strides=(2, 4), **small), IMAGES, BOXES),
            (
                likely.Detector(
                    networks.ConvNet((2,), dropout=0.1), (4,), inference=inference.MCDropout(draws=2, by=quick())
                ),
                IMAGES,
                BOXES,
            ),
        ],
        "Diffusion": [
            (likely.Diffusion(networks.MLP((4,)), steps=5, **small), ROWS, None),
            (likely.Diffusion(networks.MLP((4,)), steps=5, **small), ROWS, LABELS),
        ],
        "EnergyModel": [(likely.EnergyModel(**small), (ROWS > 0).astype(float), None)],
        "FactorAnalysis": [(likely.FactorAnalysis(1), ROWS, None)],
        "Flow": [
            (likely.Flow(kind, layers=2, network=networks.MLP((4,)), **small), ROWS, None)
            for kind in ("spline", "affine", "planar", "continuous")
        ],
        "Forecaster": [
            (likely.Forecaster(lags=2, **seeded), NUMBERS, None),
            (likely.Forecaster(lags=2, horizon=3, **seeded), [NUMBERS, NUMBERS[:15]], None),
            (likely.Forecaster(network=networks.LSTM(2), context=3, **small), ROWS, None),
            (likely.Forecaster(likelihoods.Poisson(), lags=2, **seeded), COUNTS[:, 0], None),
            (likely.Forecaster(network=Naive(), **seeded), NUMBERS, None),
            (likely.Forecaster(network=ExponentialSmoothing(), season=4, **seeded), NUMBERS, None),
        ],
        "FrameModel": [(likely.FrameModel(likely.GaussianMixture(2)), "numbers", None)],
        "GAN": [
            (likely.GAN(networks.MLP((4,)), networks.MLP((4,)), latent=2, penalty=penalty, **small), X, condition)
            for penalty, X, condition in (
                (None, ROWS, LABELS),
                ("spectral", ROWS, None),
                (Gradient(1.0, norm=0.0, at="real"), IMAGES, None),
            )
        ],
        "GaussianMixture": [
            (likely.GaussianMixture(2, covariance=kind), ROWS, None) for kind in ("full", "tied", "diag", "spherical")
        ],
        "GaussianProcess": [
            (likely.GaussianProcess(), ROWS[:10], NUMBERS[:10]),
            (likely.GaussianProcess(inducing=4), ROWS, NUMBERS),
            (likely.GaussianProcess(likelihood=likelihoods.Categorical()), ROWS[:10], LABELS[:10]),
        ],
        "HiddenMarkov": [
            (likely.HiddenMarkov(n_states=2), ROWS, None),
            (likely.HiddenMarkov(likely.GaussianMixture(2), n_states=2), ROWS, None),
            (likely.HiddenMarkov(mixed, n_states=2), columns, None),
        ],
        "Hopfield": [(likely.Hopfield(), SIGNS, None)],
        "KMeans": [(likely.KMeans(2), ROWS, None)],
        "KalmanFilter": [(likely.KalmanFilter(2), ROWS, None), (likely.KalmanFilter.local_trend(), ROWS[:, :1], None)],
        "KernelRidge": [
            (likely.KernelRidge(kernels.RBF()), ROWS, NUMBERS),
            (likely.KernelRidge(kernels.Deep(networks.MLP((2,)))), ROWS, NUMBERS),
        ],
        "LanguageModel": [
            (likely.LanguageModel(), WORDS, None),
            (likely.LanguageModel(networks.Transformer(4, 2, 1), context=6, **small), WORDS, None),
            (likely.LanguageModel(networks.LRU(4, 2, 1), tokens="bpe(size=260)", context=6, **small), WORDS, None),
        ],
        "MaskedLanguageModel": [
            (likely.MaskedLanguageModel(networks.Transformer(4, 2, 1), context=6, **small), WORDS, None),
            (likely.MaskedLanguageModel(networks.GRU(3), next_sentence=True, context=6, **small), [WORDS], None),
        ],
        "LatentDirichlet": [(likely.LatentDirichlet(2), COUNTS, None)],
        "Mixture": [(likely.Mixture(mixed, n_components=2), columns, None)],
        "NaiveBayes": [(likely.NaiveBayes(mixed), columns, LABELS), (likely.NaiveBayes(), WORDS, [0, 1, 0])],
        "PCA": [(likely.PCA(2), ROWS, None)],
        "Perceptron": [(likely.Perceptron(), ROWS, TWO)],
        "Regressor": [
            (likely.Regressor(), ROWS, NUMBERS),
            (likely.Regressor(likelihood=likelihoods.Normal(0.5), inference=inference.Exact("full")), ROWS, NUMBERS),
            (likely.Regressor(network=deep, inference=inference.Ensemble(2, by=quick())), ROWS, NUMBERS),
            (likely.Regressor(likelihoods.StudentT(), inference=inference.Variational.example()), ROWS, NUMBERS),
            (likely.Regressor(likelihood=likelihoods.MultivariateNormal(), inference=quick()), ROWS, ROWS[:, :2]),
        ],
        "ScoreModel": [
            (likely.ScoreModel(networks.MLP((4,)), noise_levels=3, **small), ROWS, None),
            (likely.ScoreModel(networks.MLP((4,)), noise_levels=3, **small), ROWS, LABELS),
        ],
        "Seq2Seq": [
            (likely.Seq2Seq(networks.GRU(2, bidirectional=True), networks.LSTM(2), **small), WORDS, WORDS[::-1]),
            (
                likely.Seq2Seq(*[networks.Transformer(4, 2, 1)] * 2, tokens=("words", "bpe(size=260)"), **small),
                WORDS,
                WORDS[::-1],
            ),
        ],
        "SupportVector": [
            (likely.SupportVector(), ROWS, LABELS),
            (likely.SupportVector(epsilon=0.1), ROWS, NUMBERS),
        ],
        "TableModel": [(likely.TableModel(likely.Classifier(), target="colour"), "frame", None)],
        "VAE": [(likely.VAE(latent=1, **small), ROWS, None), (likely.VAE(latent=1, levels=2, **small), ROWS, None)],
        "WordVectors": [(likely.WordVectors(3, min_count=1, **seeded), WORDS, None)],
    }


# --- questions ----------------------------------------------------------------------------------------------------
def ask(model, X, y, names=None):
    """Put every question that the model has, or those named, and check the answers; the names of those answered."""
    answered = []
    pairs = (X,) if y is None else (X, y)
    target = ("wet",) if isinstance(model, likely.BayesianNetwork) else ()
    supervised = isinstance(
        model, likely.Classifier | likely.Regressor | likely.GaussianProcess | likely.Seq2Seq | likely.Detector
    )
    questions = {
        **dict.fromkeys(("predict", "predict_proba"), (X, *target)),
        **dict.fromkeys(("transform", "decode", "posterior", "decision_function", "energy", "filter"), (X,)),
        **dict.fromkeys(("predict_dist", "joint_log_prob", "smooth"), (X,)),
        **dict.fromkeys(("log_prob", "score", "score_function"), pairs),
        "sample": (X, 2) if supervised else (2, *(y[:1] if getattr(model, "condition_", None) else ())),
        "forecast": (X, 2),
        **(dict.fromkeys(("predict", "predict_dist"), (3,)) if isinstance(model, likely.Forecaster) else {}),
        "marginals": (),
    }
    for name, arguments in questions.items():
        if not callable(getattr(model, name, None)) or (names is not None and name not in names):
            continue
        try:
            answer = getattr(model, name)(*arguments)
        except LikelyError:
            continue
        except AttributeError:
            if names is not None:
                raise
            continue  # a model around one that has no such answer
        answered.append(name)
        for values in numbers_in(answer):
            low = name in ("log_prob", "score", "joint_log_prob")  # of what cannot be, −∞
            if np.isnan(values).any() or (np.isposinf(values) if low else np.isinf(values)).any():
                raise ArithmeticError(f"{name} is not finite")
    return answered


def numbers_in(answer):
    """The arrays of numbers in an answer of any form."""
    if isinstance(answer, torch.Tensor):
        answer = answer.numpy()
    if isinstance(answer, np.ndarray | float | int):
        values = np.asarray(answer)
        if values.dtype.kind in "fiu":
            yield values.astype(float)
    elif isinstance(answer, dict):
        yield from (values for part in answer.values() for values in numbers_in(part))
    elif isinstance(answer, list | tuple):
        yield from (values for part in answer for values in numbers_in(part))
    elif hasattr(answer, "toarray"):
        yield answer.toarray().astype(float)


def tell(path, folder):
    """What is wrong with how the command line shows a file, or scores a table by it or refuses to; "" if nothing is."""
    from typer.testing import CliRunner

    from likely.cli.app import app

    table = folder / "table.csv"
    frame().to_csv(table, index=False)
    shown = CliRunner().invoke(app, ["show", str(path)])
    if shown.exit_code or "model" not in shown.stdout or "parameters" not in shown.stdout:
        return f"show: {shown.exception!r} {shown.output}"
    scored = CliRunner().invoke(app, ["evaluate", str(path), str(table)])
    lines = [line for line in scored.stderr.splitlines() if line.startswith("error: ")]
    if scored.exit_code == 0 and "log_score" in scored.stdout:
        return ""
    if scored.exit_code == 2 and len(lines) == 1 and ("likely" in lines[0].lower() or "column" in lines[0].lower()):
        return ""
    return f"evaluate: {scored.exception!r} {scored.output} {scored.stderr}"


# --- changes ------------------------------------------------------------------------------------------------------
DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int32, torch.int64, torch.bool)
JUNK = (None, -1, 0, 1, 2, 3, 7, 10**9, -(10**9), 2**70, 0.5, -0.5, 1e30, math.inf, math.nan, "x", "", [], {}, True)


def change_tensor(tensors, random):
    """One tensor that is not what it was; words that say how."""
    name = sorted(tensors)[random.integers(len(tensors))]
    value = tensors[name]
    kinds = ["grow", "shrink", "transpose", "axis", "flat", "dtype", "entry", "negate", "scale", "swap", "delete"]
    kind = str(random.choice([*kinds, "long", "first", "rename"]))
    if kind in ("grow", "shrink", "long") and value.ndim:
        axis = int(random.integers(value.ndim))
        size = value.shape[axis]
        wanted = {"grow": size + int(random.integers(1, 3)), "shrink": max(size - 1, 0), "long": 20_000}[kind]
        index = torch.arange(wanted) % max(size, 1)
        value = value.index_select(axis, index) if size else value.new_zeros([2] * value.ndim)
    elif kind == "transpose" and value.ndim > 1:
        value = value.movedim(0, -1)
    elif kind == "axis":
        value = value.unsqueeze(int(random.integers(value.ndim + 1)))
    elif kind == "first" and value.ndim and len(value):
        value = value[0]
    elif kind == "flat":
        value = value.reshape(-1)
    elif kind == "dtype":
        value = value.to(DTYPES[random.integers(len(DTYPES))])
    elif kind == "entry" and value.numel():
        value = value.clone()
        bad = [math.nan, math.inf, -math.inf, -1.0, 0.0, 1e30] if value.is_floating_point() else [-1, 10**6, 2**31 - 1]
        value.view(-1)[random.integers(value.numel())] = bad[random.integers(len(bad))]
    elif kind == "negate" and value.dtype != torch.bool:
        value = -value
    elif kind == "scale" and value.is_floating_point():
        value = value * float(random.choice([0.0, 1e-300, 3.0, 1e10]))
    elif kind == "swap":
        other = sorted(tensors)[random.integers(len(tensors))]
        tensors[other], value = value, tensors[other]
    if kind in ("delete", "rename"):
        del tensors[name]
    if kind != "delete":
        tensors[name + "x" if kind == "rename" else name] = value.contiguous()
    return f"{name} {kind}"


def places_in(tree, path=()):
    """Paths of all entries of a JSON tree."""
    entries = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in entries:
        yield (*path, key)
        yield from places_in(value, (*path, key))


def change_header(header, random):
    """One entry of the arguments or of what was learned that is not what it was; words that say how."""
    places = [path for path in places_in(header) if path[0] in ("params", "learned") and len(path) > 1]
    path = places[random.integers(len(places))]
    owner = header
    for key in path[:-1]:
        owner = owner[key]
    kind = str(random.choice(["junk", "junk", "near", "delete", "swap", "repeat"]))
    value = owner[path[-1]]
    if kind == "delete":
        del owner[path[-1]]
    elif kind == "near" and isinstance(value, int | float) and not isinstance(value, bool):
        owner[path[-1]] = value + int(random.choice([-1, 1]))
    elif kind == "repeat" and isinstance(value, list):
        owner[path[-1]] = value * int(random.choice([2, 3, 1000])) if random.random() < 0.7 else value[:-1]
    elif kind == "swap":
        other = places[random.integers(len(places))]
        source = header
        for key in other:
            source = source.get(key) if isinstance(source, dict) else source[key]
        owner[path[-1]] = copy.deepcopy(source)
    else:
        owner[path[-1]] = copy.deepcopy(JUNK[random.integers(len(JUNK))])
    now = "gone" if kind == "delete" else repr(owner[path[-1]])[:60]
    return f"{'.'.join(map(str, path))} {kind} {now}"


def changed(header, tensors, random):
    """A changed copy, and what was changed."""
    header, tensors = json.loads(json.dumps(header)), dict(tensors)
    words = []
    for _ in range(1 + int(random.random() < 0.2)):
        of_tensor = bool(tensors) and random.random() < 0.5
        words.append(change_tensor(tensors, random) if of_tensor else change_header(header, random))
    return header, tensors, "; ".join(words)


# --- the run ------------------------------------------------------------------------------------------------------
def stop(*_):
    raise TimeoutError(f"more than {SECONDS} s of CPU time")


def look(name, seed, count, folder):
    """All changed files of one model; how many were refused, and how many answered."""
    refused = answered = 0
    for index, (model, X, y) in enumerate(examples()[name]):
        X = {"frame": frame, "numbers": lambda: frame()[NAMES]}[X]() if isinstance(X, str) else X
        model.fit(X) if y is None else model.fit(X, y)
        path = folder / f"{name}.likely"
        model.save(path)
        header, tensors = read_file(path)
        names = ask(likely.load(path), X, y)  # what was not changed answers
        assert names, f"{name} answers nothing"
        if trouble := tell(path, folder):
            print("FAIL", name, index, trouble[:400], flush=True)
        for number in range(seed, seed + count):
            random = np.random.default_rng([number, index, sum(name.encode())])
            new_header, new_tensors, words = changed(header, tensors, random)
            print("AT", name, index, number, words, flush=True)
            write_file(path, new_header, new_tensors)
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            try:
                loaded = likely.load(path)
            except ModelFileError:
                refused += 1
                continue
            except Exception as error:
                print("FAIL", name, index, number, f"[{words}] load: {error!r}"[:400], flush=True)
                continue
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0)
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            try:
                ask(loaded, X, y, names)
                answered += 1
            except Exception as error:
                where = error.__traceback__
                while where.tb_next is not None:
                    where = where.tb_next
                place = f"{Path(where.tb_frame.f_code.co_filename).name}:{where.tb_lineno}"
                print("FAIL", name, index, number, f"[{words}] {error!r} at {place}"[:400], flush=True)
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0)
    print("DONE", name, refused, answered, f"{time.process_time():.1f}", flush=True)


if __name__ == "__main__":
    faulthandler.enable()
    signal.signal(signal.SIGPROF, stop)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    torch.set_num_threads(1)
    np.seterr(all="ignore")
    warnings.simplefilter("ignore")
    seed, count, *names = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            look(name, int(seed), int(count), Path(folder))
