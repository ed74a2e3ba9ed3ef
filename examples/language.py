"""A language model of the descriptions of data sets, by counts of seven characters, in a second."""

from sklearn import datasets

from likely import LanguageModel
from likely.decoding import Sample
from likely.models.language import NGram

loaders = (datasets.load_iris, datasets.load_wine, datasets.load_diabetes, datasets.load_breast_cancer)
text = "\n".join(loader().DESCR for loader in loaders)
held_out = datasets.load_linnerud().DESCR

model = LanguageModel(NGram(7), tokens="characters(unknown=True)", random_state=0).fit(text)
print(f"{len(text)} characters read; perplexity of another text {model.perplexity(held_out):.1f} per character")
print(model.sample(1, prompt="The data", length=200, decoding=Sample(temperature=0.7), random_state=0)[0])
