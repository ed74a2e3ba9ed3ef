"""New handwritten digits from a variational autoencoder whose pixels are counts of ink, 0 to 16."""

import numpy as np
from sklearn.datasets import load_digits

from likely import VAE, plots
from likely.inference import MAP
from likely.likelihoods import Binomial
from likely.networks import MLP
from likely.optim import Adam

images = load_digits().data
train, test = images[:1500], images[1500:]

body = MLP((128,))
training = MAP(Adam(2e-3), epochs=40, batch_size=64)
model = VAE(Binomial(16), latent=8, encoder=body, decoder=body, inference=training, random_state=0)
model.fit(train)
new = model.sample(len(test), random_state=0)
print(f"log p of digits that were not seen is above {model.score(test):.1f}")
print("drawn inks:", np.unique(new).astype(int).tolist())

plots.image_grid(new[:40].reshape(-1, 8, 8), columns=10, title="Drawn").figure.savefig("generate.png")
