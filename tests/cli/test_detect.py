"""`likely fit IMAGES --boxes FILE` and `likely detect` give what Detector gives, in the pixels of the images."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from likely import load
from likely.data import read_image, write_image
from likely.evaluate import average_precision

QUICK = "map(adam(0.01), epochs=6, batch_size=8)"


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Bright squares on grey noise, 32 × 48 pixels, with a COCO file."""
    folder, rng = tmp_path_factory.mktemp("photos"), np.random.default_rng(0)
    images, annotations = [], []
    for number in range(24):
        image = rng.uniform(0, 0.3, (32, 48))
        x, y = (int(value) for value in rng.integers(0, 20, 2))
        image[y : y + 12, x : x + 12] += 0.6
        write_image(folder / f"{number:02}.png", image)
        images.append({"id": number, "file_name": f"{number:02}.png"})
        annotations.append({"image_id": number, "category_id": 1, "bbox": [x, y, 12, 12]})
    content = {"images": images, "annotations": annotations, "categories": [{"id": 1, "name": "square"}]}
    (folder / "boxes.json").write_text(json.dumps(content))
    return folder


@pytest.fixture(scope="module")
def squares(photos, tmp_path_factory):
    """A detector of them, fitted at half their size."""
    from tests.cli.conftest import invoke

    path = tmp_path_factory.mktemp("detector") / "squares.likely"
    words = ("fit", photos, "--boxes", photos / "boxes.json", "--size", "16x24", "--inference", QUICK, "--out", path)
    ran = invoke(*words, "--network", "res_net(channels=[8,16], blocks=1)")
    assert ran.code == 0, ran.err
    assert "24 images of 16 × 24 pixels with 24 square" in ran.out
    assert f"likely detect {path} IMAGES" in ran.out
    return path


def test_boxes_are_those_of_python_in_the_pixels_of_the_image(run, photos, squares):
    ran = run("detect", squares, photos, "--threshold", 0.1, "--out", "boxes.csv")
    assert ran.code == 0, ran.err
    written = pl.read_csv("boxes.csv", schema_overrides={"image": pl.String})
    image = read_image(photos / "00.png", size=(16, 24))
    expected = load(squares).detect(image[None], 0.1)[0]
    own = written.filter(pl.col("image") == "00.png")
    np.testing.assert_allclose(own["xmin"], 2 * expected.boxes[:, 0], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(own["ymax_scale"], 2 * expected.scales[:, 3], rtol=1e-4)
    assert set(own["label"]) <= {"square"}
    piped = run("detect", squares, photos / "00.png", "--threshold", 0.1).out
    assert piped.splitlines()[0] == ",".join(written.columns)
    assert len(piped.splitlines()) == 1 + len(expected)


def test_pictures_and_a_figure(run, tmp_path, photos, squares):
    ran = run("detect", squares, photos / "00.png", "--pictures", "seen", "--boxes", photos / "boxes.json")
    assert ran.code == 0, ran.err
    assert "measured  mAP " in ran.out
    assert read_image(tmp_path / "seen" / "00.png").shape[0] == 3
    answer = run("detect", squares, photos / "00.png", "--boxes", photos / "boxes.json", "--json").json()
    assert 0 <= answer["map"] <= answer["map_50"] <= 1
    assert answer["images"] == 1


def test_images_of_one_name_in_two_folders_are_told_apart(run, tmp_path, photos, squares):
    """And so are those that differ by their ending alone."""
    files = ["dark/0.png", "light/0.png", "light/0.jpg"]
    for number, name in enumerate(files):
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        write_image(tmp_path / "in" / name, read_image(photos / f"{number:02}.png"))
    ran = run("detect", squares, "in", "--threshold", 0.01, "--out", "boxes.csv", "--pictures", "seen")
    assert ran.code == 0, ran.err
    assert " in 3 images (" in ran.out
    assert sorted(pl.read_csv("boxes.csv")["image"].unique()) == sorted(files)
    drawn = sorted(path.relative_to(tmp_path / "seen").as_posix() for path in (tmp_path / "seen").rglob("*.png"))
    assert drawn == ["dark/0.png", "light/0.jpg.png", "light/0.png.png"]


def test_only_the_images_that_are_asked_about_are_measured(run, photos, squares):
    """One image alone, by its own true box, as in Python; and those of a folder that the file tells of."""
    model = load(squares)
    content = json.loads((photos / "boxes.json").read_text())
    for number in (0, 3):
        path = photos / f"{number:02}.png"
        answer = run("detect", squares, path, "--boxes", photos / "boxes.json", "--json").json()
        x, y, width, height = np.array(content["annotations"][number]["bbox"]) / 2
        found = model.detect(read_image(path, size=(16, 24))[None], 0.01)
        expected = average_precision(found, [[[x, y, x + width, y + height]]], [["square"]])
        assert answer["map"] == pytest.approx(expected.value)
    told = run("detect", squares, photos / "00.png", "--boxes", photos / "boxes.json").out
    assert " in 1 image (" in told
    assert "tells of" not in told
    some = content | {"images": content["images"][:5], "annotations": content["annotations"][:5]}
    Path("some.json").write_text(json.dumps(some))
    assert ", on the 5 images that some.json tells of" in " ".join(
        run("detect", squares, photos, "--boxes", "some.json").out.split()
    )


def test_what_will_not_do(run, refused, photos, squares, regressor):
    refused(run("detect", regressor, photos), "holds a TableModel, which detects nothing")
    refused(run("detect", squares, "nowhere"), "No image or folder at nowhere")
    refused(run("detect", squares, photos, "--threshold", 3), "threshold=3.0 must be a number between 0 and 1")
    for verb in ("predict", "segment", "evaluate"):
        refused(run(verb, squares, photos), "holds a Detector, which says where objects are", "likely detect")
    refused(run("detect", squares, photos, "--pictures", squares), "squares.likely is a file; name a folder")
    refused(
        run("fit", photos, "--boxes", photos / "boxes.json", "--target", "y"), "--target does not belong to --boxes"
    )
    refused(run("fit", photos, "--boxes", photos / "boxes.json", "--size", "big"), "write HEIGHTxWIDTH")
    refused(run("fit", photos, "--boxes", photos / "none.json"), "No file at")
    refused(run("fit", "a.csv", "--boxes", photos / "boxes.json"), "a.csv is not a folder of images")
    refused(run("fit", photos, "--size", "8"), "--boxes FILE says where objects are")
    refused(run("fit", photos, "--boxes", photos / "boxes.json", "--network", "mlp()"), "MLP gives no map of features")
