from __future__ import annotations

import json

import numpy as np
import pytest

from likely.core.errors import DataError, ReadingNote
from likely.data import read_boxes, read_coco, read_voc, write_image

CONTENT = {
    "images": [{"id": 3, "file_name": "a.png"}, {"id": 9, "file_name": "b.png"}],
    "categories": [{"id": 1, "name": "red"}, {"id": 4, "name": "white"}],
    "annotations": [
        {"image_id": 3, "category_id": 4, "bbox": [2, 1, 6, 3]},
        {"image_id": 3, "category_id": 1, "bbox": [0, 0, 4, 4]},
    ],
}


@pytest.fixture
def folder(tmp_path):
    for name in ("a", "b"):
        write_image(tmp_path / f"{name}.png", np.full((10, 20), 0.5))
    return tmp_path


def coco(folder, **changes):
    path = folder / "boxes.json"
    path.write_text(json.dumps(CONTENT | changes))
    return path


def voc(folder, name, boxes, filename=None, size=None):
    things = "".join(
        f"<object><name>{label}</name><bndbox><xmin>{b[0]}</xmin><ymin>{b[1]}</ymin><xmax>{b[2]}</xmax>"
        f"<ymax>{b[3]}</ymax></bndbox></object>"
        for label, b in boxes
    )
    sides = f"<size><width>{size[0]}</width><height>{size[1]}</height></size>" if size else ""
    text = f"<annotation><filename>{filename or name + '.png'}</filename>{sides}{things}</annotation>"
    (folder / f"{name}.xml").write_text(text)


def test_both_forms_say_the_same(folder):
    """And an image may have no box."""
    one = read_boxes(coco(folder))
    voc(folder, "a", [("white", (2, 1, 8, 4)), ("red", (0, 0, 4, 4))], "elsewhere.jpg")
    voc(folder, "b", [])
    other = read_boxes(folder)
    for read in (one, other):
        assert read.images.shape == (2, 1, 10, 20)
        np.testing.assert_array_equal(read.boxes[0], [[2, 1, 8, 4], [0, 0, 4, 4]])
        assert read.labels[0].tolist() == ["white", "red"]
        assert read.boxes[1].shape == (0, 4)
        assert str(read) == "2 images of 10 × 20 pixels with 1 red, 1 white"
        assert [path.name for path in read.paths] == ["a.png", "b.png"]


def test_boxes_are_resized_with_their_images(folder):
    read = read_coco(coco(folder), size=(20, 10), colour="rgb")
    assert read.images.shape == (2, 3, 20, 10)
    np.testing.assert_allclose(read.boxes[0][0], [1, 2, 4, 8])


def test_images_may_lie_elsewhere(folder, tmp_path_factory):
    other = tmp_path_factory.mktemp("annotations")
    assert len(read_coco(coco(other), folder)) == 2
    (folder / "Annotations").mkdir()
    (folder / "images").mkdir()
    (folder / "a.png").rename(folder / "images" / "a.png")
    voc(folder / "Annotations", "a", [("red", (0, 0, 4, 4))])
    assert len(read_voc(folder / "Annotations")) == 1


def test_boxes_are_cut_at_edges_and_empty_ones_are_left_out(folder):
    boxes = [[15, 5, 10, 10], [3, 3, 0, 5], [30, 0, 5, 5]]
    annotations = [{"image_id": 3, "category_id": 1, "bbox": box} for box in boxes]
    with pytest.warns(ReadingNote) as notes:
        read = read_coco(coco(folder, annotations=annotations))
    np.testing.assert_array_equal(read.boxes[0], [[15, 5, 20, 10]])
    assert read.labels[0].tolist() == ["red"]
    texts = [str(note.message) for note in notes]
    assert "2 boxes of a.png have no area in it and are left out, such as (3, 3, 3, 8)" in texts[0]
    assert "1 box reaches out of a.png, which has 20 × 10 pixels, and is cut off there" in texts[1]


def test_crowds_are_left_out_with_a_note(folder):
    crowd = {"image_id": 3, "category_id": 1, "bbox": [0, 0, 9, 9], "iscrowd": 1}
    with pytest.warns(ReadingNote, match=r"boxes\.json: 1 box of a crowd \(iscrowd\) is left out"):
        read = read_coco(coco(folder, annotations=[*CONTENT["annotations"], crowd]))
    assert len(read.boxes[0]) == 2
    with pytest.warns(ReadingNote, match="2 boxes of crowds"):
        read_coco(coco(folder, annotations=[crowd, crowd]))


def test_voc_counts_pixels_from_1_unless_a_corner_is_0(folder):
    """(1, 1, w, h) is the whole image; a program that counts from 0 has a box at 0 sooner or later."""
    voc(folder, "a", [("red", (1, 1, 20, 10)), ("red", (3, 2, 8, 4))])
    np.testing.assert_array_equal(read_voc(folder).boxes[0], [[0, 0, 20, 10], [2, 1, 8, 4]])
    voc(folder, "b", [("red", (5, 0, 8, 4))])
    np.testing.assert_array_equal(read_voc(folder).boxes[0], [[1, 1, 20, 10], [3, 2, 8, 4]])


def test_a_file_that_gives_an_image_another_size_is_refused(folder):
    """As one that was written before its images were made smaller; no size, or 0, says nothing."""
    wrong = [CONTENT["images"][0] | {"width": 40, "height": 20}, CONTENT["images"][1]]
    with pytest.raises(
        DataError, match=r"says that a\.png has 40 × 20 pixels \(width × height\), but .*has 20 × 10; give"
    ):
        read_coco(coco(folder, images=wrong))
    right = [entry | {"width": 20, "height": 10} for entry in CONTENT["images"]]
    assert len(read_coco(coco(folder, images=right), size=(5, 5))) == 2
    voc(folder, "a", [], size=(0, 0))
    assert len(read_voc(folder)) == 1
    voc(folder, "a", [], size=(10, 20))
    with pytest.raises(DataError, match=r"a\.xml says that a\.png has 10 × 20 pixels"):
        read_voc(folder)


def test_one_image_is_read_alone(folder):
    """Others need not be there."""
    path = coco(folder)
    (folder / "b.png").unlink()
    read = read_boxes(path, folder / "a.png")
    assert [own.name for own in read.paths] == ["a.png"]
    assert str(read) == "1 image of 10 × 20 pixels with 1 red, 1 white"
    write_image(folder / "c.png", np.zeros((4, 4)))
    with pytest.raises(DataError, match=r"boxes\.json says nothing of .*c\.png"):
        read_boxes(path, folder / "c.png")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"images": None}, r"boxes\.json is not a COCO file: it has no list of images"),
        ({"categories": [{"id": 1}]}, "entry 0 of categories has no name"),
        ({"annotations": [{"image_id": 5, "category_id": 1, "bbox": [0, 0, 1, 1]}]}, "image 5, which is not in its"),
        (
            {"annotations": [{"image_id": 3, "category_id": 2, "bbox": [0, 0, 1, 1]}]},
            "category 2; its categories are 1, 4",
        ),
        ({"annotations": [{"image_id": 3, "category_id": 1, "bbox": [0, 0, 1]}]}, r"bbox \[0, 0, 1\]; four numbers"),
        ({"images": [{"id": 3, "file_name": "none.png"}], "annotations": []}, r"No image at .*none\.png"),
        ({"images": [], "annotations": []}, "name no image"),
    ],
)
def test_a_coco_file_that_will_not_do_is_named(folder, changes, words):
    with pytest.raises(DataError, match=words):
        read_coco(coco(folder, **changes))


def test_other_files_that_will_not_do(folder):
    (folder / "text.json").write_text("[1, 2]")
    (folder / "a.xml").write_text("<annotation><object><name>red</name></object></annotation>")
    with pytest.raises(DataError, match="it holds a list"):
        read_coco(folder / "text.json")
    with pytest.raises(DataError, match="No file at"):
        read_coco(folder / "missing.json")
    with pytest.raises(DataError, match=r"a\.xml: object 0 has no name or no bndbox"):
        read_voc(folder)
    (folder / "a.xml").write_text("<annotation>")
    with pytest.raises(DataError, match=r"a\.xml cannot be read"):
        read_voc(folder)
    (folder / "empty").mkdir()
    with pytest.raises(DataError, match=r"has no \.xml files"):
        read_voc(folder / "empty")


def test_classes_that_are_not_known_and_sizes_that_differ(folder):
    with pytest.raises(DataError, match=r"boxes\.json has the class 'white' for a\.png; known: 'red'"):
        read_coco(coco(folder), classes=["red"])
    write_image(folder / "b.png", np.zeros((5, 5)))
    with pytest.raises(DataError, match=r"b\.png has 5 × 5 pixels and .*a\.png has 10 × 20; .* need a size="):
        read_coco(coco(folder))
