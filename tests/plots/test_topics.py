import numpy as np
import pytest

from likely import LatentDirichlet
from likely.core.errors import DataError
from likely.inference import CollapsedGibbs
from likely.plots.topics import topics

WORDS = [f"w{i}" for i in range(12)]


@pytest.fixture(scope="module")
def model():
    X = np.random.default_rng(0).poisson(np.kron(np.eye(4), np.full((10, 3), 3.0)) * np.arange(1, 13))
    return LatentDirichlet(4, CollapsedGibbs(40, 20), random_state=0).fit(X)


def test_bars_are_the_probabilities_of_the_top_words(model):
    ax = topics(model, WORDS, which=[2, 0], words=3)
    for inset, k in zip(ax.child_axes, (2, 0), strict=True):
        np.testing.assert_allclose([bar.get_width() for bar in inset.patches], np.sort(model.topic_word_[k])[::-1][:3])
        assert [text.get_text() for text in inset.get_yticklabels()] == model.top_words(3, WORDS)[k]
        assert inset.get_title(loc="left").startswith(f"topic {k} · ")
    scales = {inset.get_xlim() for inset in ax.child_axes}
    assert len(scales) == 1


def test_the_largest_topics_come_first_and_the_title_names_the_largest(model):
    size = model.components_.sum(1)
    ax = topics(model, WORDS)
    order = [int(inset.get_title(loc="left").split()[1]) for inset in ax.child_axes]
    assert order == np.argsort(-size).tolist()
    lead = ", ".join(model.top_words(3, WORDS)[order[0]])
    title = " ".join(ax.get_title(loc="left").split())
    assert title == f"The largest topic ({lead}) has {round(100 * size.max() / size.sum())}% of the words"


def test_given_axes_are_drawn_on_and_a_title_is_kept(model):
    from matplotlib import pyplot as plt

    _, mine = plt.subplots()
    ax = topics(model, ax=mine, title="What the documents are about")
    assert ax is mine
    assert ax.get_title(loc="left") == "What the documents are about"


def test_errors(model):
    with pytest.raises(DataError, match="which must name topics from 0 to 3; found 4"):
        topics(model, which=[1, 4])
    with pytest.raises(DataError, match="which must name topics from 0 to 3; found nothing"):
        topics(model, which=[])
    with pytest.raises(DataError, match="words must be a positive integer; found 0"):
        topics(model, words=0)
    with pytest.raises(DataError, match="vocabulary has 2 names; the model knows 12 words"):
        topics(model, ["a", "b"])
