"""A small network taught by a large one against the same network trained alone, on few labels.

MNIST: the teacher (hidden 256, 10,000 images) teaches students (hidden 16, 500 of them) at temperature 4. The line is
the students' error, a mean over five seeds; the words give the paired difference of accuracies and its standard error.
"""

from __future__ import annotations

import time

import numpy as np

from likely import Classifier
from likely.inference import MAP, Distill
from likely.networks import MLP
from likely.optim import Adam

from .datasets import mnist
from .timing import Result, show

__all__ = ["run"]

TEACHER_ROWS, STUDENT_ROWS, HIDDEN, TEMPERATURE = 10_000, 500, 16, 4.0


def run(repeats: int = 5) -> list[Result]:
    data = mnist(TEACHER_ROWS)
    start = time.perf_counter()
    training = MAP(Adam(1e-3), epochs=15, batch_size=128)
    teacher = Classifier(network=MLP((256,)), inference=training, random_state=0).fit(data.x, data.y)
    x, y = data.x[:STUDENT_ROWS], data.y[:STUDENT_ROWS]
    by = MAP(Adam(3e-3), epochs=100, batch_size=64)
    scores = np.empty((2, repeats))
    for seed in range(repeats):
        for place, inference in enumerate((by, Distill(teacher, TEMPERATURE, by=by))):
            student = Classifier(network=MLP((HIDDEN,)), inference=inference, random_state=seed).fit(x, y)
            scores[place, seed] = student.score(data.x_test, data.y_test)
    gains = scores[1] - scores[0]
    error = float(gains.std(ddof=1) / np.sqrt(repeats)) if repeats > 1 else float("nan")
    words = (
        f"{data.source}: accuracy {scores[1].mean():.4f} taught and {scores[0].mean():.4f} alone, "
        f"difference {gains.mean():.4f} ± {error:.4f} over {repeats} seeds; "
        f"teacher {teacher.score(data.x_test, data.y_test):.4f}; {time.perf_counter() - start:.0f} s"
    )
    better = bool(gains.mean() > 2 * error)
    alone, taught = 1 - scores.mean(1)
    return [
        Result("distillation: error of a student", "the same net alone", taught, alone, words, better, 1.0, "of all")
    ]


if __name__ == "__main__":
    show(run())
