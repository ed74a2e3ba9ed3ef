"""How many kinds of wine are there? Mixtures of Gaussians, and the number of components by BIC."""

from sklearn.datasets import load_wine
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from likely import PCA, GaussianMixture, plots
from likely.inference import EM

data = load_wine()
X = PCA(4).fit_transform(StandardScaler().fit_transform(data.data))

# The likelihood has several tops: five starts for each, and as many steps as they need.
starts = EM(max_iter=1000, starts=5)
fits = {k: GaussianMixture(k, covariance="diag", inference=starts, random_state=0).fit(X) for k in range(1, 7)}
for k, model in fits.items():
    print(f"{k} components: BIC {model.bic(X):.0f}")
best = min(fits.values(), key=lambda model: model.bic(X))
agreement = adjusted_rand_score(data.target, best.predict(X))
print(f"chosen: {best.n_components}, agreement with the vineyards {agreement:.2f} of 1")

ax = plots.mixture(best, X, names=("first principal component", "second principal component"))
ax.figure.savefig("clusters.png", bbox_inches="tight")
