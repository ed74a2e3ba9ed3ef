import matplotlib
import pytest

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def settings_stay_and_figures_close():
    """No picture changes matplotlib's settings, and none is left open."""
    from matplotlib import pyplot as plt

    before = dict(matplotlib.rcParams)
    yield
    after = dict(matplotlib.rcParams)
    plt.close("all")
    assert after == before
