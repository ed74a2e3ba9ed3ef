"""A convolutional network for handwritten digits: training curve, ensemble, confusion."""

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from likely import Classifier, evaluate, plots
from likely.inference import MAP, Ensemble
from likely.networks import ConvNet
from likely.optim import Adam, Cosine

images, digit = load_digits(return_X_y=True)
train, test, seen, unseen = train_test_split(images.reshape(-1, 1, 8, 8), digit, random_state=0)

training = MAP(Adam(3e-3), epochs=8, schedule=Cosine(), validation=0.1)
one = Classifier(network=ConvNet((16, 32)), inference=training, random_state=0).fit(train, seen)
three = Classifier(network=ConvNet((16, 32)), inference=Ensemble(3, by=training), random_state=0).fit(train, seen)
for name, model in {"one network": one, "the mean of three": three}.items():
    right, log_p = model.score(test, unseen), model.log_prob(test, unseen).mean()
    print(f"{name}: accuracy {right:.3f}, log-probability {log_p:.3f}")

plots.history(one.history_).figure.savefig("images_training.png", bbox_inches="tight")
matrix = evaluate.confusion_matrix(unseen, three.predict(test))
plots.confusion(matrix, three.classes_).figure.savefig("images_confusion.png", bbox_inches="tight")
