"""Labels of raw texts: SST-2 sentences with the defaults, and languages of Multi30k captions.

`Classifier()` and `NaiveBayes()` are given strings and nothing else. Beside them is what one would write with
scikit-learn: binary counts of words and pairs, naive Bayes or logistic regression. Published: naive Bayes with bigrams
82.5 %, Kim's convolutional network without pre-trained vectors 82.7 %.
"""

from __future__ import annotations

import gzip
import time

import numpy as np

from likely import Classifier, NaiveBayes

from .datasets import FOLDER
from .timing import Result, show

__all__ = ["run"]

Split = tuple[list[str], np.ndarray]


def sst2(*parts: str) -> list[Split]:
    """The sentences and labels of these parts of SST-2: train, dev, test."""
    with gzip.open(FOLDER / "sst2.tsv.gz", "rt", encoding="utf-8") as lines:
        rows = [line.rstrip("\n").split("\t") for line in lines]
    return [([r[2] for r in rows if r[0] == p], np.array([int(r[1]) for r in rows if r[0] == p])) for p in parts]


def languages(parts: tuple[str, ...] = ("train", "test"), most: int = 2_000) -> list[Split]:
    """Captions in English and in German, in turn; as many for training as a small set has."""
    with gzip.open(FOLDER / "multi30k_en_de.tsv.gz", "rt", encoding="utf-8") as lines:
        rows = [line.rstrip("\n").split("\t") for line in lines]
    splits = []
    for part in parts:
        own = [row for row in rows if row[0] == part][:most]
        texts = [row[1 + number % 2] for number, row in enumerate(own)]
        splits.append((texts, np.arange(len(own)) % 2))
    return splits


def peers() -> dict[str, object]:
    """What one would write with scikit-learn."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import MultinomialNB
    from sklearn.pipeline import make_pipeline

    def words() -> CountVectorizer:
        return CountVectorizer(binary=True, ngram_range=(1, 2), token_pattern=r"\w+|[^\w\s]")

    return {
        "scikit-learn naive Bayes": make_pipeline(words(), MultinomialNB()),
        "scikit-learn logistic": make_pipeline(words(), LogisticRegression(max_iter=300)),
    }


def run(repeats: int = 1) -> list[Result]:
    """Accuracy on rows that no model has seen; there is no speed to compare."""
    for name, (train, test) in {"SST-2": sst2("train", "test"), "languages": languages()}.items():
        print(f"{name}: {len(train[0]):,} texts to learn from, {len(test[0]):,} to tell")
        for label, model in {"Classifier()": Classifier(), "NaiveBayes()": NaiveBayes(), **peers()}.items():
            start = time.process_time()
            fitted = model.fit(*train)  # type: ignore[attr-defined]
            seconds = time.process_time() - start
            probability = fitted.predict_proba(test[0])
            right = probability.argmax(1) == test[1]
            score = np.log(probability[np.arange(len(right)), test[1]]).mean()
            print(f"  {label:26} accuracy {right.mean():.4f}  log score {score:.3f}  {seconds:.1f} s of CPU")
    return []


if __name__ == "__main__":
    show(run())
