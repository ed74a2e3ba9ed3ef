import io
import subprocess
import sys

import pytest

from likely.core import progress as module
from likely.core.progress import progress

SCRIPT = """
import time
from likely.core.progress import progress
with progress("Fitting", 3, show={show}) as report:
    for step in range(3):
        report(step + 1, loss=0.5 - step, rate=1e-9)
        time.sleep(0.15)
"""


class Screen(io.StringIO):
    def __init__(self, terminal):
        super().__init__()
        self.terminal = terminal

    def isatty(self):
        return self.terminal


def _shown(monkeypatch, terminal, show, rank=0):
    screen = Screen(terminal)
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(module.distributed, "rank", lambda: rank)
    with progress("Fitting", 3, show=show) as report:
        for step in range(3):
            report(step + 1, loss=0.5)
    return screen.getvalue()


def test_a_terminal_shows_title_count_and_numbers(monkeypatch):
    drawn = _shown(monkeypatch, terminal=True, show=True)
    for part in ("Fitting", "3/3", "loss 0.5"):
        assert part in drawn


@pytest.mark.parametrize(
    ("terminal", "show", "rank"), [(True, False, 0), (False, True, 0), (False, False, 0), (True, True, 1)]
)
def test_all_else_is_silent(monkeypatch, terminal, show, rank):
    assert _shown(monkeypatch, terminal, show, rank) == ""


def test_a_pipe_gets_a_plain_line_now_and_then(monkeypatch):
    monkeypatch.setattr(module, "EVERY", 0.0)
    lines = _shown(monkeypatch, terminal=False, show=True).splitlines()
    assert lines == [f"Fitting: {step} of 3  loss 0.5  0 s" for step in (1, 2, 3)]


def test_no_standard_error_is_no_error(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    with progress("Fitting", 3, show=True) as report:
        report(1)


def test_an_error_inside_is_passed_on(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Screen(True))
    with pytest.raises(KeyError), progress("Fitting", 3, show=True):
        raise KeyError


def test_a_pipe_stays_empty():
    done = subprocess.run([sys.executable, "-c", SCRIPT.format(show=True)], capture_output=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are a POSIX feature")
def test_a_real_terminal_is_drawn_on_and_left_clean():
    import os
    import pty

    parent, child = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "100"}
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT.format(show=True)], stdout=subprocess.PIPE, stderr=child, env=environment
    )
    os.close(child)
    drawn = b""
    while True:
        try:
            piece = os.read(parent, 65536)
        except OSError:  # the other end was closed
            break
        if not piece:
            break
        drawn += piece
    os.close(parent)
    out, _ = process.communicate(timeout=120)
    assert (process.returncode, out) == (0, b"")
    text = drawn.decode()
    assert "Fitting" in text
    assert "/3" in text
    assert "rate 1e-09" in text
    assert text.rstrip().endswith("\x1b[2K")  # the bar is wiped at the end
