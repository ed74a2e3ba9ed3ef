import numpy as np
import pytest
from matplotlib import pyplot as plt

from likely import Seq2Seq
from likely.data.text import BPE
from likely.inference import MAP
from likely.networks import GRU
from likely.plots.attentions import attention


@pytest.fixture(scope="module")
def model():
    model = Seq2Seq(GRU(4), GRU(4), tokens=BPE(300), inference=MAP(epochs=1), random_state=0)
    return model.fit(["a cat", "a dog"], ["eine Katze", "ein Hund"])


def test_the_picture_is_the_weights_with_tokens_at_its_sides(model):
    ax = attention(model, "a dog", "ein Hund")
    weights = model.attention_weights("a dog", "ein Hund")
    np.testing.assert_allclose(np.asarray(ax.images[0].get_array()), weights)
    assert [label.get_text() for label in ax.get_xticklabels()][-1] == "(end)"
    assert len(ax.get_yticklabels()) == len(weights)
    sure = int((weights.max(1) > 0.5).sum())
    assert ax.get_title(loc="left").replace("\n", " ").startswith(f"{sure} of {len(weights)} tokens look mostly at")


def test_it_draws_on_the_axes_given_and_takes_a_title(model):
    _, ax = plt.subplots()
    assert attention(model, "a cat", "eine", title="Looks", ax=ax) is ax
    assert ax.get_title(loc="left") == "Looks"
