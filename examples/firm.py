"""How little has to change until a classifier errs, and how training against attacks helps."""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from likely import Classifier, evaluate, plots
from likely.inference import MAP, AdversarialTraining
from likely.networks import MLP
from likely.robust import PGD

images, digit = load_digits(return_X_y=True)
train, test, seen, unseen = train_test_split(images / 16, digit, random_state=0)
training = MAP(epochs=20, batch_size=64)
plain = Classifier(network=MLP((64,)), inference=training, random_state=0).fit(train, seen)
against = AdversarialTraining(training, PGD(0.1, steps=4), bounds=(0.0, 1.0))
firm = Classifier(network=MLP((64,)), inference=against, random_state=0).fit(train, seen)

radii = np.array([0.02, 0.05, 0.1, 0.15])
attack = PGD(0.1, steps=10)
curves = {
    name: evaluate.robustness(model, test, unseen, attack, radii=radii, bounds=(0.0, 1.0), random_state=0)
    for name, model in {"plain": plain, "trained against attacks": firm}.items()
}
for name, curve in curves.items():
    attacked = ", ".join(f"{right:.2f} within {radius}" for radius, right in zip(radii, curve.accuracy, strict=True))
    print(f"{name}: right {curve.clean:.2f}; {attacked}")
plots.robustness(curves).figure.savefig("firm.png", bbox_inches="tight")
