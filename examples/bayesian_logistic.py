"""A Bayesian logistic regression by Hamiltonian Monte Carlo: is a tumour malignant, and how sure is the model?"""

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from likely import Classifier, evaluate, plots, priors
from likely.inference import HMC

data = load_breast_cancer()
X, y = StandardScaler().fit_transform(data.data[:, :10]), data.target_names[data.target]
train, test, seen, unseen = train_test_split(X, y, random_state=0)

model = Classifier(prior=priors.Normal(1.0), inference=HMC(chains=4, draws=500, warmup=300), random_state=0)
model.fit(train, seen)
info = model.posterior_.info
print(f"R-hat {info['rhat']:.3f} (chains agree below 1.01)")
print(f"accuracy {model.score(test, unseen):.3f}, mean log-probability {model.log_prob(test, unseen).mean():.3f}")

unsure = np.abs(model.predict_proba(test)[:, 0] - 0.5).argmin()
print(f"least sure of row {unsure}: malignant with probability {model.predict_proba(test)[unsure, 1]:.2f}")

ax = plots.calibration(evaluate.calibration(model, test, unseen))
ax.figure.savefig("bayesian_logistic.png", bbox_inches="tight")
