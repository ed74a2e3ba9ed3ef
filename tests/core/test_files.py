import errno
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from tests.core.conftest import ROWS

import likely
from likely.core.errors import ModelFileError
from likely.core.files import read_file, write_file
from likely.core.header import FORMAT


def _no_leftovers(folder, *names):
    return sorted(os.listdir(folder)) == sorted(names)


# --- both ways --------------------------------------------------------------------------------------------------
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
kinds = st.sampled_from([np.float32, np.float64, np.int64, np.int32, np.uint8, np.bool_])
tensor = arrays(dtype=kinds, shape=array_shapes(min_dims=0, min_side=0, max_side=4)).map(torch.from_numpy)


@settings(max_examples=30)
@given(
    header=st.dictionaries(st.text(max_size=5), plain, max_size=3), tensors=st.dictionaries(st.text(max_size=5), tensor)
)
def test_what_is_written_is_read(tmp_path_factory, header, tensors):
    header.pop("format", None)
    tensors.pop("__metadata__", None)
    path = tmp_path_factory.mktemp("files") / "a"
    write_file(path, header, tensors)
    read_header, read_tensors = read_file(path)
    assert read_header == {"format": FORMAT, **header}
    assert read_tensors.keys() == tensors.keys()
    for name, value in tensors.items():
        assert read_tensors[name].dtype == value.dtype
        assert read_tensors[name].shape == value.shape
        assert read_tensors[name].numpy().tobytes() == value.numpy().tobytes()


def test_views_and_shared_memory_are_written_as_they_look(tmp_path):
    base = torch.arange(6.0).reshape(2, 3)
    views = {
        "all": base,
        "same": base,
        "turned": base.T,
        "row": base[1],
        "wide": base[0].expand(4, 3),
        "none": base[:0],
    }
    write_file(tmp_path / "a", {}, views)
    _, read_tensors = read_file(tmp_path / "a")
    for name, value in views.items():
        assert torch.equal(read_tensors[name], value)
        assert read_tensors[name].is_contiguous()
    read_tensors["all"].zero_()
    assert torch.equal(read_file(tmp_path / "a")[1]["all"], base)


def test_equal_models_have_equal_bytes(tmp_path):
    for name in "abcd":
        write_file(tmp_path / name, {"x": 1, "y": [2]}, {str(i): torch.full((i,), 1.0) for i in range(9)})
    assert len({(tmp_path / name).read_bytes() for name in "abcd"}) == 1


def test_gradients_do_not_travel(tmp_path):
    write_file(tmp_path / "a", {}, {"w": torch.ones(2, requires_grad=True)})
    tensor = read_file(tmp_path / "a")[1]["w"]
    assert type(tensor) is torch.Tensor
    assert not tensor.requires_grad


def test_numbers_that_are_not_finite_are_kept(tmp_path):
    write_file(tmp_path / "a", {"x": [float("inf"), float("nan")]}, {"w": torch.tensor([float("nan"), -float("inf")])})
    header, tensors = read_file(tmp_path / "a")
    assert header["x"][0] == float("inf")
    assert header["x"][1] != header["x"][1]
    assert torch.isnan(tensors["w"][0])


def test_a_new_file_has_the_usual_mode_and_an_old_one_keeps_its_own(tmp_path):
    (tmp_path / "plain").touch()
    write_file(tmp_path / "a", {}, {})
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "plain").stat().st_mode
    (tmp_path / "a").chmod(0o640)
    write_file(tmp_path / "a", {}, {})
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "far").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "far" / "model")
    write_file(tmp_path / "link", {"x": 1}, {})
    assert (tmp_path / "link").is_symlink()
    assert read_file(tmp_path / "far" / "model")[0]["x"] == read_file(tmp_path / "link")[0]["x"] == 1


def test_names_may_be_long_or_odd(tmp_path):
    for name in ("x" * 250, "é" * 120, "a b\n", "-"):
        write_file(tmp_path / name, {"name": name}, {})
        assert read_file(tmp_path / name)[0]["name"] == name
    write_file(os.fsencode(tmp_path / "bytes"), {}, {})
    assert read_file(str(tmp_path / "bytes"))[0] == {"format": FORMAT}


def test_threads_that_write_one_file_leave_one_whole_file(tmp_path):
    path = tmp_path / "a"

    def write(number):
        for _ in range(10):
            write_file(path, {"number": number}, {"w": torch.full((1000,), float(number))})

    threads = [threading.Thread(target=write, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        if path.exists():
            header, tensors = read_file(path)
            assert (tensors["w"] == header["number"]).all()
    for thread in threads:
        thread.join()
    assert _no_leftovers(tmp_path, "a")


# --- failures while writing -------------------------------------------------------------------------------------
@pytest.mark.parametrize("call", ["os.fsync", "os.replace", "os.chmod", "likely.core.files.save_file"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
def test_a_full_disk_leaves_the_old_file_and_nothing_else(saved, monkeypatch, call, code):
    before = saved.read_bytes()

    def fail(*args, **kwargs):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(call, fail)
    with pytest.raises(
        ModelFileError, match=rf"Cannot write .*model\.likely: {os.strerror(code)}\. Nothing was changed"
    ):
        write_file(saved, {}, {"w": torch.ones(3)})
    monkeypatch.undo()
    assert saved.read_bytes() == before
    assert _no_leftovers(saved.parent, saved.name)


REAL_FAILURE = """
import resource, sys
import torch
from likely.core.errors import ModelFileError
from likely.core.files import read_file, write_file
path = sys.argv[1]
write_file(path, {"old": True}, {"w": torch.ones(10)})
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    write_file(path, {"old": False}, {"w": torch.ones(1_000_000)})
except ModelFileError as error:
    assert "Cannot write" in str(error) and "has room" in str(error), error
else:
    raise SystemExit("no error")
assert read_file(path)[0]["old"] is True
"""


@pytest.mark.skipif(sys.platform == "win32", reason="file size limits are a POSIX feature")
def test_a_file_that_the_system_cuts_short_is_never_kept(tmp_path):
    path = tmp_path / "model"
    done = subprocess.run([sys.executable, "-c", REAL_FAILURE, path], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert _no_leftovers(tmp_path, "model")


KILLED = """
import os, sys
import torch
from likely.core.files import write_file
os.replace = lambda *_: os._exit(9)  # the last moment before the new file takes the old one's place
write_file(sys.argv[1], {"old": False}, {"w": torch.ones(10)})
"""


def test_a_process_killed_before_the_rename_leaves_the_old_file(saved, models):
    before = saved.read_bytes()
    done = subprocess.run([sys.executable, "-c", KILLED, saved], timeout=120)
    assert done.returncode == 9
    assert saved.read_bytes() == before
    np.testing.assert_array_equal(likely.load(saved).predict(ROWS), models["network"].predict(ROWS))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("", "it is a folder; give a file name"),
        (".", "it is a folder; give a file name"),
        ("folder", "it is a folder; give a file name"),
        ("no/such/folder/model", "No such file or directory"),
        ("file/model", "leads through a file"),
        ("/proc/model", "Cannot write /proc/model"),
        ("/dev/null", "it is a device or pipe"),
        ("a\0b", "path must be the name of a file; found .*null"),
        ("x" * 5000, "path must be the name of a file; found 'xxx"),
        (None, "path must be the name of a file; found None"),
        (3, "path must be the name of a file; found 3"),
    ],
)
def test_places_that_cannot_be_written(tmp_path, monkeypatch, models, path, text):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(ModelFileError, match=text):
        models["network"].save(path)
    with pytest.raises(ModelFileError, match=r"No model file at|path "):
        likely.load(path)
    assert _no_leftovers(tmp_path, "file", "folder")
