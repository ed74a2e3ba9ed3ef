"""What is written as an image is read as it was; folders are classes; every complaint names the file."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from likely.core.errors import DataError
from likely.data import read_image, read_images, read_mask, read_masks, write_image

GREY = np.arange(20, dtype=np.uint8).reshape(4, 5) * 10
COLOUR = np.stack([GREY, GREY[::-1], GREY[:, ::-1]])


@pytest.fixture
def photos(tmp_path):
    for name in ("cat", "dog"):
        (tmp_path / name).mkdir()
        for i in range(2):
            write_image(tmp_path / name / f"{i}.png", GREY + i)
    return tmp_path


@pytest.mark.parametrize("ending", [".png", ".bmp", ".tif"])
def test_what_is_written_is_read(tmp_path, ending):
    path = tmp_path / f"a{ending}"
    write_image(path, GREY)
    np.testing.assert_array_equal(read_image(path), GREY[None] / np.float32(255))
    write_image(path, COLOUR)
    np.testing.assert_array_equal(read_image(path), COLOUR / np.float32(255))
    write_image(path, COLOUR / 255)
    np.testing.assert_array_equal(read_image(path), COLOUR / np.float32(255))


def test_jpeg_is_near(tmp_path):
    write_image(tmp_path / "a.jpg", np.full((3, 16, 16), 0.4))
    np.testing.assert_allclose(read_image(tmp_path / "a.jpg"), 0.4, atol=0.01)


def test_grey_and_colour_are_turned_into_one_another(tmp_path):
    write_image(tmp_path / "a.png", GREY)
    assert read_image(tmp_path / "a.png", colour="rgb").shape == (3, 4, 5)
    np.testing.assert_array_equal(read_image(tmp_path / "a.png", colour="rgb")[1], read_image(tmp_path / "a.png")[0])
    write_image(tmp_path / "b.png", COLOUR)
    luma = np.tensordot([0.299, 0.587, 0.114], COLOUR / 255, 1)
    np.testing.assert_allclose(read_image(tmp_path / "b.png", colour="grey")[0], luma, atol=1 / 255)


def test_sixteen_bits_palettes_transparency_and_turned_photographs(tmp_path):
    Image.fromarray(GREY.astype(np.uint16) * 257).save(tmp_path / "deep.png")
    np.testing.assert_allclose(read_image(tmp_path / "deep.png")[0], GREY / 255, atol=1e-6)
    clear = np.zeros((2, 2, 4), np.uint8)
    Image.fromarray(clear).save(tmp_path / "clear.png")
    np.testing.assert_array_equal(read_image(tmp_path / "clear.png"), np.ones((3, 2, 2)))
    palette = Image.fromarray(GREY % 3).convert("P")
    palette.putpalette([0, 0, 0, 255, 0, 0, 0, 255, 0])
    palette.putdata((GREY % 3).ravel())
    palette.save(tmp_path / "palette.png")
    np.testing.assert_array_equal(read_mask(tmp_path / "palette.png"), GREY % 3)
    np.testing.assert_array_equal(read_image(tmp_path / "palette.png")[0], GREY % 3 == 1)
    image = Image.fromarray(GREY)
    image.getexif()[0x0112] = 6  # the camera stood on its side
    image.save(tmp_path / "turned.png", exif=image.getexif())
    np.testing.assert_array_equal(read_image(tmp_path / "turned.png")[0], np.rot90(GREY, -1) / np.float32(255))


def test_folders_are_classes(photos):
    read = read_images(photos)
    assert read.labels.tolist() == ["cat", "cat", "dog", "dog"]
    assert [path.name for path in read.paths] == ["0.png", "1.png", "0.png", "1.png"]
    assert str(read) == "4 grey images of 4 × 5 pixels in 2 classes"
    assert read_images(photos / "cat").labels is None
    (photos / "one").mkdir()
    write_image(photos / "one" / "0.png", GREY)
    assert str(read_images(photos / "one")) == "1 grey image of 4 × 5 pixels"
    (photos / "one" / "0.png").unlink()
    write_image(photos / "dog" / "2.png", COLOUR)
    assert read_images(photos).images.shape == (5, 3, 4, 5)
    assert read_images(photos, size=8, colour="grey").images.shape == (5, 1, 8, 8)


def test_masks_are_found_by_name_and_keep_their_numbers(photos):
    folder = photos / "masks"
    folder.mkdir()
    write_image(folder / "1_mask.tif", GREY % 2)
    write_image(folder / "0.png", GREY % 3)
    images = read_images(photos / "cat")
    np.testing.assert_array_equal(read_masks(folder, images), [GREY % 3, GREY % 2])
    larger = read_masks(folder, read_images(photos / "cat", size=(8, 10)), size=(8, 10))
    np.testing.assert_array_equal(larger[0], np.kron(GREY % 3, np.ones((2, 2), int)))
    Image.fromarray(np.stack([GREY] * 3, -1)).save(folder / "1_mask.tif")  # grey, though it has three channels
    np.testing.assert_array_equal(read_masks(folder, images)[1], GREY)


def test_masks_of_images_with_one_name_are_told_apart_by_their_folders(photos, tmp_path):
    images, masks = read_images(photos), tmp_path / "masks"
    for number, name in enumerate(("cat", "dog")):
        (masks / name).mkdir(parents=True)
        for i in range(2):
            write_image(masks / name / f"{i}_mask.png", np.full((4, 5), 10 * number + i))
    assert read_masks(masks, images)[:, 0, 0].tolist() == [0, 1, 10, 11]
    (masks / "dog" / "1_mask.png").rename(masks / "dog" / "2_mask.png")
    with pytest.raises(DataError, match=r"1_mask\.png is the only mask for both .*cat/1\.png and .*dog/1\.png"):
        read_masks(masks, images)
    write_image(masks / "cat" / "0_mask.tif", GREY)
    with pytest.raises(DataError, match=r"two masks for .*cat/0\.png: .*0_mask\.png and .*0_mask\.tif"):
        read_masks(masks, read_images(photos / "cat"))


def test_an_image_beside_the_folders_has_no_class(photos):
    write_image(photos / "lost.png", GREY)
    with pytest.raises(
        DataError, match=r"lost\.png lies beside folders, which are classes \(cat, dog\), and so has none"
    ):
        read_images(photos)
    read = read_images(photos, labelled=False)
    assert len(read) == 5
    assert read.labels is None


def test_bad_folders_and_files_are_named(photos, tmp_path):
    empty = photos / "empty"
    empty.mkdir()
    with pytest.raises(DataError, match=r"empty has no images; they end in \.png"):
        read_images(empty)
    with pytest.raises(DataError, match=r"No folder at .*nowhere"):
        read_images(photos / "nowhere")
    with pytest.raises(DataError, match=r"0\.png is not a folder"):
        read_images(photos / "cat" / "0.png")
    with pytest.raises(DataError, match=r"No image at .*none\.png"):
        read_image(photos / "none.png")
    with pytest.raises(DataError, match=r"is a folder; read_images"):
        read_image(photos)
    (photos / "cat" / "2.png").write_text("words")
    with pytest.raises(DataError, match=r"2\.png cannot be read: it is not an image that Pillow knows"):
        read_images(photos)
    whole = (photos / "dog" / "0.png").read_bytes()
    (photos / "dog" / "3.png").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"3\.png cannot be read"):
        read_image(photos / "dog" / "3.png")


def test_sizes_and_masks_that_do_not_agree_are_named(photos):
    write_image(photos / "dog" / "2.png", np.zeros((7, 7)))
    with pytest.raises(DataError, match=r"2\.png has 7 × 7 pixels and .*0\.png has 4 × 5.* need a size="):
        read_images(photos)
    assert len(read_images(photos, size=(6, 6))) == 5
    images, folder = read_images(photos / "cat"), photos / "masks"
    folder.mkdir()
    write_image(folder / "0.png", GREY % 2)
    with pytest.raises(DataError, match=r"no mask for .*1\.png: a file 1\.png"):
        read_masks(folder, images)
    write_image(folder / "1.png", np.zeros((9, 9), int))
    with pytest.raises(DataError, match=r"mask .*1\.png has 9 × 9 pixels, but the image .*1\.png has 4 × 5"):
        read_masks(folder, images)
    write_image(folder / "1.png", COLOUR)
    with pytest.raises(DataError, match=r"1\.png is a mask in colours \(mode RGB\)"):
        read_masks(folder, images)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda path: read_image(path, colour="blue"), "colour='blue' must be auto, grey or rgb"),
        (lambda path: read_image(path, size=(3, 0)), r"size=\(3, 0\) must be \(height, width\)"),
        (lambda path: write_image(path, np.full((2, 2), 1.5)), "must lie between 0 and 1"),
        (lambda path: write_image(path, np.full((2, 2), 300)), "integers from 0 to 255"),
        (lambda path: write_image(path, np.ones(3)), r"values has shape \(3,\)"),
        (lambda path: write_image(path.with_suffix(".what"), np.ones((2, 2))), r"Cannot write .*what: end its name in"),
    ],
)
def test_bad_arguments_are_named(tmp_path, call, message):
    path = tmp_path / "a.png"
    write_image(path, GREY)
    with pytest.raises(DataError, match=message):
        call(path)
