"""Model files that were damaged, forged or changed by hand: `load` refuses them, and never answers from them."""

import copy
import io
import json
import os
import pickle
import struct
import time
import warnings
import zipfile

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.core.conftest import ROWS

import likely
from likely import Regressor
from likely.core import files
from likely.core.errors import LikelyError, ModelFileError
from likely.core.files import check_tensors, read_file, write_file


# --- damage -----------------------------------------------------------------------------------------------------
def test_any_single_bit_that_flips_is_noticed(saved):
    sound = saved.read_bytes()
    random = np.random.default_rng(0)
    places = [*range(8), *random.choice(len(sound), 150, replace=False)]
    for place in places:
        damaged = bytearray(sound)
        damaged[place] ^= 1 << int(random.integers(8))
        saved.write_bytes(damaged)
        with pytest.raises(ModelFileError):
            likely.load(saved)


def test_a_flipped_bit_among_the_weights_is_called_damage(saved):
    damaged = bytearray(saved.read_bytes())
    damaged[-3] ^= 4
    saved.write_bytes(damaged)
    with pytest.raises(ModelFileError, match="is damaged: its content does not match its checksum"):
        likely.load(saved)


def test_a_file_cut_short_or_with_a_tail_is_noticed(saved):
    sound = saved.read_bytes()
    for length in [0, 1, 7, 8, 9, 100, *range(200, len(sound), 97), len(sound) - 1]:
        saved.write_bytes(sound[:length])
        with pytest.raises(ModelFileError, match="damaged or not a model file"):
            likely.load(saved)
    saved.write_bytes(sound + b"\0")
    with pytest.raises(ModelFileError):
        likely.load(saved)


@given(st.binary(max_size=200) | st.binary(max_size=100).map(lambda b: struct.pack("<Q", len(b)) + b))
def test_random_bytes_are_no_model(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("files") / "a"
    path.write_bytes(content)
    with pytest.raises(ModelFileError):
        likely.load(path)


def _zip():
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("a", "b")
    return stream.getvalue()


def _torch_save():
    stream = io.BytesIO()
    torch.save({"w": torch.ones(2)}, stream)
    return stream.getvalue()


@pytest.mark.parametrize(
    "content", [pickle.dumps({"a": 1}), _zip(), _torch_save(), b"{}", b"\x80\x04", b"a,b\n1,2\n" * 99]
)
def test_files_of_other_kinds_are_refused(tmp_path, content):
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(ModelFileError, match="damaged or not a model file of Likely"):
        likely.load(tmp_path / "a")


class Bomb:
    def __reduce__(self):
        return os.mkdir, ("exploded",)


def test_loading_runs_no_code(tmp_path, monkeypatch, saved):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bomb").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(ModelFileError):
        likely.load("bomb")
    assert not (tmp_path / "exploded").exists()

    likely.load(saved)  # imports what it needs: modules are read by marshal

    def forbidden(*args, **kwargs):
        raise AssertionError("a model file was unpickled")

    for name in ("pickle.load", "pickle.loads", "pickle.Unpickler", "torch.load", "marshal.loads"):
        monkeypatch.setattr(name, forbidden)
    assert isinstance(likely.load(saved), Regressor)


def _raw(header, body=b""):
    if isinstance(header, dict) and "w" in header:
        header["__metadata__"] = {"likely": '0 {"format": 1}'}
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + body


@pytest.mark.parametrize(
    "content",
    [
        _raw({"w": {"dtype": "F32", "shape": [10**12, 10**12], "data_offsets": [0, 4 * 10**24]}}),
        _raw({"w": {"dtype": "F32", "shape": [10**9], "data_offsets": [0, 4 * 10**9]}}, b"\0" * 16),
        _raw({"w": {"dtype": "F32", "shape": [4], "data_offsets": [0, 2**63]}}, b"\0" * 16),
        _raw({"w": {"dtype": "F32", "shape": [4], "data_offsets": [16, 0]}}, b"\0" * 16),
        _raw({"w": {"dtype": "F32", "shape": [-4], "data_offsets": [0, 16]}}, b"\0" * 16),
        _raw({"w": {"dtype": "F32", "shape": [5], "data_offsets": [0, 16]}}, b"\0" * 16),
        _raw({"w": {"dtype": "X99", "shape": [4], "data_offsets": [0, 16]}}, b"\0" * 16),
        _raw({"w": {"dtype": "F32", "shape": "four", "data_offsets": [0, 16]}}, b"\0" * 16),
        _raw({"w": 3}), _raw([]), _raw(b"[" * 100_000), _raw(b"{" * 100), _raw(b"null"), _raw(b"\xff\xfe"),
        struct.pack("<Q", 2**63) + b"{}", struct.pack("<Q", 10**9) + b"{}",
    ],
    ids=str,
)  # fmt: skip
def test_impossible_tables_of_tensors_are_refused_without_memory(tmp_path, content):
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(ModelFileError, match="damaged or not a model file of Likely"):
        likely.load(tmp_path / "a")


def _with_text(text):
    return _raw({"__metadata__": {"likely": text}})


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (_raw({}), "is a safetensors file, but not one that Likely wrote"),
        (_raw({"__metadata__": {"other": "x"}}), "not one that Likely wrote"),
        (_with_text(""), "damaged or not a model file"),
        (_with_text("0 {"), "damaged or not a model file"),
        (_with_text("0 " + "[" * 100_000), "damaged or not a model file"),
        (_with_text("0 " + "9" * 10_000), "damaged or not a model file"),
        (_with_text("0 null"), "a header that is not a description of a model"),
        (_with_text("0 [1]"), "a header that is not a description of a model"),
        (_with_text("0 {}"), r"no readable format version \(None\)"),
        (_with_text('0 {"format": NaN}'), r"no readable format version \(nan\)"),
        (_with_text('0 {"format": Infinity}'), r"no readable format version \(inf\)"),
        (_with_text('0 {"format": true}'), r"no readable format version \(True\)"),
        (_with_text('0 {"format": "1"}'), r"no readable format version \('1'\)"),
        (_with_text('0 {"format": 0}'), r"no readable format version \(0\)"),
        (_with_text('0 {"format": 2}'), r"has format 2; this Likely reads up to 1\. Install a newer Likely"),
        (_with_text('0 {"format": 1}'), "is damaged: its content does not match its checksum"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_headers_that_are_not_ours_are_refused(tmp_path, content, text):
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(ModelFileError, match=text):
        likely.load(tmp_path / "a")


# --- headers that were changed, with a right checksum -----------------------------------------------------------
def _places(value, path=()):
    if path:
        yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inner:
        yield from _places(part, (*path, key))


def _put(value, path, new):
    changed = copy.deepcopy(value)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = new
    return changed


@pytest.mark.parametrize("kind", ["network", "full", "labels"])
def test_a_header_with_a_replaced_value_is_refused_or_sound(models, kind, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)  # hundreds of files that nobody needs
    model, path = models[kind], tmp_path / "a"
    model.save(path)
    header, tensors = read_file(path)
    expected = model.predict(ROWS)
    refused = []
    for place in _places(header):
        for new in (None, 7, "word", [], {}, -1.5):
            write_file(path, _put(header, place, new), tensors)
            try:
                loaded = likely.load(path)
            except ModelFileError as error:
                refused.append(str(error))
                continue
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    assert loaded.predict(ROWS).shape == expected.shape, place
            except LikelyError:
                continue
    assert len(refused) > 50
    assert max(map(len, refused)) < 1000


@pytest.mark.parametrize("kind", ["network", "full", "labels"])
def test_a_header_with_any_part_missing_is_refused_or_gives_a_sound_model(models, kind, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)  # hundreds of files that nobody needs
    model, path = models[kind], tmp_path / "a"
    model.save(path)
    header, tensors = read_file(path)
    for place in _places(header):
        changed = copy.deepcopy(header)
        inner = changed
        for key in place[:-1]:
            inner = inner[key]
        del inner[place[-1]]
        write_file(path, changed, tensors)
        try:
            loaded = likely.load(path)
        except ModelFileError:
            continue
        try:
            assert loaded.predict(ROWS).shape == model.predict(ROWS).shape
        except LikelyError:
            continue


@pytest.mark.parametrize(
    ("place", "new", "text"),
    [
        (
            ("model",),
            "Oracle",
            r"holds a model 'Oracle', which is not known here \(.*Classifier, .*\); import the module",
        ),
        (("model",), ["Regressor"], "does not describe a model that can be rebuilt"),
        (("params",), [], "does not describe a model that can be rebuilt"),
        (("params", "colour"), "red", "does not describe a model that can be rebuilt: .*colour"),
        (("params", "network"), {"spec": "network.Oracle"}, "Unknown network 'Oracle'"),
        (("params", "network"), {"spec": "network.MLP", "hidden": [10**9]}, "would have .* weights"),
        (("params", "network"), {"spec": "network.MLP", "hidden": [5]}, "does not fit its own specs"),
        (("params", "network"), {"spec": "network.MLP", "hidden": [4, 4]}, "does not fit its own specs: missing"),
        (("params", "network"), "mlp(hidden=__import__('os'))", "is not a literal or a known spec"),
        (("params", "likelihood"), {"spec": "likelihood.Categorical"}, "describes classes, not numbers"),
        (("learned", "plan", "out_features"), 10**15, "does not describe a model|does not fit"),
        (("learned", "plan", "in_shape"), [10**15], "does not describe a model|does not fit"),
        (("learned", "posterior", "kind"), "oracle", "does not describe a model that can be rebuilt: no 'oracle'"),
        (("learned", "posterior", "info"), None, "its info is not a table by name"),
        (("learned",), None, "does not describe a model"),
    ],
)
def test_what_does_not_fit_together_is_named(models, tmp_path, place, new, text):
    path = tmp_path / "a"
    models["network"].save(path)
    header, tensors = read_file(path)
    write_file(path, _put(header, place, new), tensors)
    start = time.perf_counter()
    with pytest.raises(ModelFileError, match=text):
        likely.load(path)
    assert time.perf_counter() - start < 2


def test_json_nested_as_deep_as_it_can_be_read_is_refused(models, tmp_path):
    path = tmp_path / "a"
    models["network"].save(path)
    header, tensors = read_file(path)
    deep = []
    for _ in range(400):
        deep = [deep]
    for place in (("params", "network"), ("learned", "posterior"), ("learned", "target"), ("model",)):
        write_file(path, _put(header, place, deep), tensors)
        with pytest.raises(ModelFileError):
            likely.load(path)


@pytest.mark.parametrize("kind", ["network", "full"])
def test_tensors_that_do_not_fit_the_specs_are_refused(models, kind, tmp_path):
    path = tmp_path / "a"
    models[kind].save(path)
    header, tensors = read_file(path)
    changes = [
        lambda t, n: t.pop(n),
        lambda t, n: t.update({n: t[n][..., None]}),
        lambda t, n: t.update({n: torch.cat([t[n], t[n]])}),
        lambda t, n: t.update({f"{n}.more": t[n]}),
        lambda t, n: t.update({n: torch.tensor(1.0)}),
    ]
    for name in [n for n in tensors if n.startswith(("parameters.", "buffers."))]:
        for change in changes[name == "buffers.unit" :]:  # a unit of 1 is not written, so none may be missing
            changed = dict(tensors)
            change(changed, name)
            write_file(path, header, changed)
            with pytest.raises(ModelFileError, match="does not fit its own specs"):
                likely.load(path)


def test_check_tensors_lists_what_is_missing_and_unexpected():
    check_tensors({"a": (2,)}, {"a": torch.ones(2)})
    with pytest.raises(ModelFileError, match=r"missing \['a'\], unexpected \['b'\]"):
        check_tensors({"a": (2,)}, {"b": torch.ones(2)})
    with pytest.raises(ModelFileError, match=r"a has shape \(3,\), not \(2,\)"):
        check_tensors({"a": (2,)}, {"a": torch.ones(3)})


def test_the_checksum_costs_less_than_the_file(tmp_path):
    tensors = {"w": torch.randn(4_000_000)}
    start = time.perf_counter()
    write_file(tmp_path / "a", {}, tensors)
    written = time.perf_counter() - start
    start = time.perf_counter()
    files._checksum("", tensors)
    assert time.perf_counter() - start < written
