"""The header of a model file, read without torch: the same answers and refusals as `read_file`."""

from __future__ import annotations

import json
import struct

import pytest
import torch

from likely.core.errors import ModelFileError
from likely.core.files import read_file, write_file
from likely.core.header import KEY, checksum, opened

TENSORS = {
    "a": torch.arange(6.0).reshape(2, 3),
    "b": torch.tensor(2.5, dtype=torch.float64),
    "c": torch.zeros(0, 4),
    "d": torch.tensor([True, False]),
    "e": torch.arange(3, dtype=torch.int32),
}


@pytest.fixture
def path(tmp_path):
    write_file(tmp_path / "m", {"model": "M"}, TENSORS)
    return tmp_path / "m"


def test_it_tells_the_description_shapes_and_values(path):
    content = path.read_bytes()
    with opened(path) as (_, header):
        header.verify(content)
        assert header.description == read_file(path)[0]
        assert {name: stored.shape for name, stored in header.tensors.items()} == {
            name: tuple(value.shape) for name, value in TENSORS.items()
        }
        assert {name: f"torch.{stored.dtype}" for name, stored in header.tensors.items()} == {
            name: str(value.dtype) for name, value in TENSORS.items()
        }
        assert header.tensors["a"].values(content) == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
        assert header.tensors["b"].values(content) == [2.5]


def test_each_changed_byte_of_a_tensor_is_noticed(path):
    content = bytearray(path.read_bytes())
    with opened(path) as (_, header):
        for stored in header.tensors.values():
            for place in range(stored.place.start, stored.place.stop):
                content[place] ^= 1
                with pytest.raises(ModelFileError, match="does not match its checksum"):
                    header.verify(bytes(content))
                content[place] ^= 1
        header.verify(bytes(content))


def written(path, table):
    """A safetensors file with this table and 8 bytes of numbers."""
    text = json.dumps({"format": 1})
    table = {"__metadata__": {KEY: f"{checksum(text, [])} {text}"}, **table}
    head = json.dumps(table).encode()
    path.write_bytes(struct.pack("<Q", len(head)) + head + bytes(8))
    return path


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"dtype": "F32", "shape": [2], "data_offsets": [0, 800]}, "tensor x does not lie in the file"),
        ({"dtype": "F32", "shape": [-2], "data_offsets": [0, 8]}, "tensor x does not lie in the file"),
        ({"dtype": "F32", "shape": [2.0], "data_offsets": [0, 8]}, "tensor x does not lie in the file"),
        ({"dtype": "F32", "shape": [3], "data_offsets": [0, 12]}, "tensor x is cut off"),
        ({"dtype": "F32", "shape": [1], "data_offsets": [0, 8]}, "tensor x is cut off"),
        ({"dtype": "F12", "shape": [1], "data_offsets": [0, 8]}, "F12"),
        ({"dtype": ["F32"], "shape": [2], "data_offsets": [0, 8]}, "unhashable"),
        ({"shape": [2]}, "dtype"),
        (7, "not subscriptable"),
    ],
)
def test_a_tensor_that_is_not_there_is_refused(tmp_path, entry, message):
    path = written(tmp_path / "m", {"x": entry})
    with pytest.raises(ModelFileError, match=rf"damaged or not a model file of Likely \(.*{message}"), opened(path):
        pass


def test_what_goes_wrong_inside_is_told_of_the_file(path):
    with pytest.raises(ModelFileError, match=r"m is damaged or not a model file of Likely \(odd\)"), opened(path):
        raise ValueError("odd")
