"""`likely segment`: masks and pictures beside their images, and how good they are."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from likely.data import read_images, read_mask, write_image


def test_masks_are_written_drawn_and_measured(run, cells, pixels):
    ran = run("segment", pixels, cells / "images", "--out", "found", "--masks", cells / "masks")
    assert ran.code == 0, ran.err
    assert "of pixels right; class 0 IoU" in ran.out
    mask = read_mask("found/3.png")
    assert mask.shape == (16, 16)
    assert set(np.unique(mask)) <= {0, 255}
    run("segment", pixels, cells / "images" / "0.png", "--pictures", "drawn")
    assert len(read_images("drawn")) == 1
    told = run("segment", pixels, cells / "images", "--masks", cells / "masks", "--json").json()
    assert 0 <= told["iou"]["255"] <= told["dice"]["255"] <= 1
    assert told["accuracy"] > 0.7
    assert sum(value for name, value in told["images"][0].items() if name != "image") == pytest.approx(1)


def test_masks_of_images_with_one_name_do_not_meet(run, cells, pixels, tmp_path):
    """Each is written where its image lies, and measured by the true mask that lies so."""
    for number, name in enumerate(("dark", "light")):
        for kind, ending in (("images", ".png"), ("masks", "_mask.png")):
            (tmp_path / kind / name).mkdir(parents=True)
            shutil.copy(cells / kind / f"{number}{ending}", tmp_path / kind / name / f"0{ending}")
    ran = run("segment", pixels, "images", "--out", "found", "--pictures", "drawn", "--masks", "masks")
    assert ran.code == 0, ran.err
    assert "2 images; " in ran.out
    run("segment", pixels, cells / "images", "--out", "apart")
    for number, name in enumerate(("dark", "light")):
        np.testing.assert_array_equal(read_mask(f"found/{name}/0.png"), read_mask(f"apart/{number}.png"))
        assert (tmp_path / "drawn" / name / "0.png").is_file()
    told = run("segment", pixels, "images", "--masks", "masks", "--json").json()
    assert [row["image"] for row in told["images"]] == ["dark/0.png", "light/0.png"]
    true, own = (
        np.stack([read_mask(f"{folder}/{name}/0{ending}.png") for name in ("dark", "light")])
        for folder, ending in (("masks", "_mask"), ("found", ""))
    )
    assert told["accuracy"] == pytest.approx((true == own).mean())


def test_images_of_any_size_are_segmented(run, pixels, tmp_path):
    write_image(tmp_path / "large.png", np.random.default_rng(0).random((75, 90)))
    assert run("segment", pixels, tmp_path / "large.png", "--out", "found").code == 0
    assert read_mask("found/large.png").shape == (75, 90)
