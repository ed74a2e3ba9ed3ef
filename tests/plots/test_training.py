import numpy as np
import pytest

from likely import plots
from likely.core.errors import DataError

LOSS, VALIDATION = [3.0, 2.0, 1.5, 1.2], [3.1, 2.4, 2.3, 2.6]


def curves(ax):
    return {line.get_label(): line for line in ax.get_lines()}


def test_curves_and_the_best_epoch():
    ax = plots.history({"loss": LOSS, "validation": VALIDATION})
    drawn = curves(ax)
    np.testing.assert_array_equal(drawn["training"].get_xdata(), [1, 2, 3, 4])
    np.testing.assert_array_equal(drawn["training"].get_ydata(), LOSS)
    np.testing.assert_array_equal(drawn["validation"].get_ydata(), VALIDATION)
    assert (drawn["best"].get_xdata()[0], drawn["best"].get_ydata()[0]) == (3, 2.3)
    assert ax.get_title(loc="left") == "Validation loss was lowest after epoch 3 (2.3)"
    assert {text.get_text() for text in ax.texts} == {"training", "validation"}
    assert ax.get_xlabel() == "epoch"


def test_the_learning_rate_has_its_own_panel():
    ax = plots.history({"loss": LOSS, "lr": [0.1, 0.05, 0.02, 0.01]})
    below = ax.child_axes[0]
    np.testing.assert_array_equal(below.get_lines()[0].get_ydata(), [0.1, 0.05, 0.02, 0.01])
    assert below.get_ylabel() == "learning rate"
    assert ax.get_title(loc="left") == "Loss fell from 3 to 1.2 in 4 epochs"


@pytest.mark.parametrize(("loss", "scale"), [([100.0, 0.1], "log"), ([2.0, 1.0], "linear"), ([100.0, -0.1], "linear")])
def test_the_scale_follows_the_losses(loss, scale):
    assert plots.history({"loss": loss}).get_yscale() == scale


def test_a_loss_that_rose_is_not_said_to_have_fallen():
    assert plots.history({"loss": [1.0, 2.0]}).get_title(loc="left") == "Loss rose from 1 to 2 in 2 epochs"


def test_gaps_are_no_error():
    ax = plots.history({"loss": LOSS, "validation": [np.nan, 2.0, np.nan, 2.5]})
    assert ax.get_title(loc="left") == "Validation loss was lowest after epoch 2 (2)"


def test_every_player_of_a_game_has_a_curve():
    ax = plots.history({"generator_loss": [0.9, 0.7], "critic_loss": [1.2, 1.38], "lr": [0.1, 0.1]})
    drawn = curves(ax)
    np.testing.assert_array_equal(drawn["generator"].get_ydata(), [0.9, 0.7])
    np.testing.assert_array_equal(drawn["critic"].get_ydata(), [1.2, 1.38])
    assert drawn["generator"].get_color() != drawn["critic"].get_color()
    assert ax.get_title(loc="left") == "After 2 epochs: generator 0.7, critic 1.38"


def test_errors():
    with pytest.raises(DataError, match='record must have a list "loss", "validation" or "…_loss"; found lr'):
        plots.history({"lr": [0.1]})
