"""Folders of images on the command line: told apart by class, and pixel by pixel."""

from __future__ import annotations

import shutil

import numpy as np
import polars as pl
import pytest

from likely import load
from likely.data import read_images, write_image

QUICK = "map(adam(0.01), epochs=4, batch_size=8)"


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Stripes across and upright, 12 × 12 pixels, in folders by class."""
    folder, rng = tmp_path_factory.mktemp("photos"), np.random.default_rng(0)
    for name in ("across", "upright"):
        (folder / name).mkdir()
        for i in range(8):
            stripes = np.tile([[0.2], [0.8]], (6, 12)) + rng.uniform(-0.1, 0.1, (12, 12))
            write_image(folder / name / f"{i}.png", stripes if name == "across" else stripes.T)
    return folder


@pytest.fixture(scope="module")
def stripes(photos, tmp_path_factory):
    from tests.cli.conftest import invoke

    path = tmp_path_factory.mktemp("stripes") / "stripes.likely"
    ran = invoke("fit", photos, "--network", "res_net(channels=[4], blocks=1)", "--inference", QUICK, "--out", path)
    assert ran.code == 0, ran.err
    assert "16 grey images of 12 × 12 pixels in 2 classes" in ran.out
    assert f"likely predict {path} NEW_IMAGES" in ran.out
    return path


def test_classes_are_those_of_python(run, photos, stripes):
    ran = run("predict", stripes, photos, "--out", "classes.csv")
    assert ran.code == 0, ran.err
    written, model = pl.read_csv("classes.csv"), load(stripes)
    read = read_images(photos)
    assert written["class_predicted"].to_list() == model.predict(read.images).tolist()
    assert written["image"][0] == "across/0.png"
    np.testing.assert_allclose(written["class_p_upright"], model.predict_proba(read.images)[:, 1], atol=1e-6)
    assert run("predict", stripes, photos / "across" / "0.png").out.count("\n") == 2
    assert run("predict", stripes, photos, "--json").json()["rows"] == 16


def test_images_are_judged_and_strange_classes_are_told(run, photos, stripes, tmp_path):
    told = run("evaluate", stripes, photos, "--json").json()
    assert told["accuracy"] == load(stripes).score(*(lambda read: (read.images, read.labels))(read_images(photos)))
    (tmp_path / "new" / "spots").mkdir(parents=True)
    (tmp_path / "new" / "across").mkdir()
    for name in ("spots", "across"):
        write_image(tmp_path / "new" / name / "0.png", np.full((3, 9, 9), 0.5))  # in colour, and of another size
    ran = run("evaluate", stripes, tmp_path / "new")
    assert "training did not show (spots)" in " ".join(ran.out.split())


def test_an_image_beside_the_folders_is_predicted_but_not_fitted(run, refused, photos, stripes, tmp_path):
    shutil.copytree(photos, tmp_path / "mixed")
    shutil.copy(photos / "across" / "0.png", tmp_path / "mixed" / "lost.png")
    assert run("predict", stripes, "mixed", "--json").json()["rows"] == 17
    refused(run("fit", "mixed"), "lost.png lies beside folders, which are classes (across, upright)")


def test_what_will_not_do(run, refused, photos, cells, stripes, pixels, regressor, tmp_path):
    refused(run("segment", stripes, photos), "one answer for each image", "likely predict")
    refused(run("predict", pixels, cells / "images"), "an answer for each pixel", "likely segment")
    refused(run("predict", regressor, photos), "that was not fitted on images")
    refused(run("segment", pixels, "nowhere"), "No image or folder at nowhere")
    refused(run("segment", pixels, cells / "images", "--out", pixels), "cells.likely is a file; name a folder")
    refused(run("fit", cells / "images"), "has images but no folders in it")
    refused(run("fit", photos, "--target", "y"), "--target does not belong to images")
    refused(run("fit", photos, "--tokens", "words()"), "cuts texts")
    refused(run("evaluate", stripes, cells / "images"), "no folders in it, which would be the classes")
    refused(run("evaluate", stripes, cells), "no image is of a class that the model knows (across, upright)")
    write_image(cells / "masks" / "0_mask.png", np.zeros((5, 5), int))
    refused(run("fit", cells / "images", "--masks", cells / "masks"), "0_mask.png has 5 × 5 pixels")
    (photos / "across" / "9.png").write_text("no picture")
    refused(run("predict", stripes, photos), "9.png cannot be read")
    (tmp_path / "empty").mkdir()
    refused(run("fit", tmp_path / "empty", "--masks", cells / "masks"), "empty has no images")
