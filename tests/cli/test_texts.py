"""Texts on the command line: what is printed is what the model says in Python."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from likely import load

GOOD = ["so warm a film", "a good , warm film", "good and funny , very warm", "a very good story"]
BAD = ["so dull a film", "a bad , cold film", "bad and dull , very cold", "a very bad story"]
STORY = "the cat sat on the mat and the rat sat on the cat . " * 3


@pytest.fixture
def reviews(run):
    pl.DataFrame({"label": ["yes"] * 4 + ["no"] * 4, "review": GOOD + BAD}).write_csv("reviews.csv")
    return run


@pytest.fixture
def folder(run):
    for name, texts in {"yes": GOOD, "no": BAD}.items():
        Path("reviews", name).mkdir(parents=True)
        for number, text in enumerate(texts):
            Path("reviews", name, f"{number}.txt").write_text(text)
    return run


def test_a_column_of_texts_is_seen(reviews):
    said = reviews("fit", "reviews.csv", "--target", "label", "-o", "m")
    assert said.code == 0, said
    assert "texts of the column review, since its strings have several words; --text names another" in said.out
    predicted = pl.read_csv(reviews("predict", "m", "reviews.csv").out.encode())
    assert predicted["label_predicted"].to_list() == load("m").predict(pl.read_csv("reviews.csv")).tolist()
    measured = reviews("evaluate", "m", "reviews.csv", "--json").json()
    assert measured["accuracy"] == 1.0
    shown = reviews("show", "m").out
    assert "texts of review" in shown
    assert "tokens auto" in shown
    assert "words and pairs of them" in shown


def test_other_columns_are_left_out_by_name(reviews, refused):
    frame = pl.read_csv("reviews.csv").with_columns(stars=pl.Series([5, 4] * 4))
    frame.write_csv("stars.csv")
    refused(
        reviews("fit", "stars.csv", "--target", "label"),
        "Column 'review' looks like text, and there are others beside it: give --text review to learn from it alone",
        "or --ignore review to learn from the others",
    )
    chosen = ("--text", "review", "--tokens", "words(min_count=2)")
    said = reviews("fit", "stars.csv", "--target", "label", *chosen, "-o", "m")
    assert "texts of the column review; not looked at: stars" in said.out
    assert load("m").model.tokens == "words(min_count=2)"
    assert reviews("fit", "stars.csv", "--target", "stars", "--text", "review", "--task", "regress").code == 0
    refused(
        reviews("fit", "stars.csv", "--target", "label", "--ignore", "review", "--tokens", "words()"),
        "--tokens 'words()' cuts texts; name the column that has them: --text COLUMN",
    )


def test_folders_are_classes(folder):
    said = folder("fit", "reviews", "-o", "m")
    assert said.code == 0, said
    assert "8 rows with a target; texts of the column text; not looked at: file" in said.out
    assert folder("evaluate", "m", "reviews", "--json").json()["accuracy"] == 1.0
    predicted = folder("predict", "m", "reviews/yes/0.txt", "--json").json()
    assert predicted["predictions"][0]["class_predicted"] == "yes"


def test_a_model_of_a_column_reads_folders_too(reviews, folder):
    assert folder("fit", "reviews.csv", "--target", "label", "-o", "m").code == 0
    assert folder("evaluate", "m", "reviews", "--json").json()["accuracy"] == 1.0


def test_language_is_learned_sampled_and_measured(run):
    Path("book.txt").write_text(STORY)
    said = run("fit", "book.txt", "--model", "language_model(ngram(4))", "-o", "m")
    assert said.code == 0, said
    assert "book.txt: one text of 156 characters" in said.out
    assert 'likely sample m --prompt "the cat sat on the m' in said.out
    model = load("m")
    drawn = run("sample", "m", "--prompt", "the m", "--length", 10, "--decoding", "greedy()").out
    assert drawn == model.sample(prompt="the m", length=10, decoding="greedy")[0] + "\n"
    assert len(run("sample", "m", "-n", 3, "--length", 5, "--json").json()["texts"]) == 3
    measured = run("evaluate", "m", "book.txt", "--json").json()
    assert measured["bits_per_character"] == pytest.approx(model.bits_per_character(STORY))
    assert measured["perplexity"] == pytest.approx(model.perplexity(STORY))
    assert "bits_per_character" in run("evaluate", "m", "book.txt").out
    assert "characters" in run("show", "m").out


def test_language_of_folders_and_columns(reviews, folder):
    for source in ("reviews", "reviews.csv"):
        said = folder("fit", source, "--model", "language_model(ngram(2), tokens=words())", "-o", "m")
        assert said.code == 0, said
        assert f"{source}: 8 texts of" in said.out


def test_what_cannot_be_is_said(reviews, refused):
    Path("book.txt").write_text(STORY)
    Path("latin.txt").write_bytes("naïve".encode("latin-1"))
    Path("empty").mkdir()
    language = ("--model", "language_model(ngram(3))", "-o", "m")
    refused(reviews("fit", "nope.txt", *language), "No text at nope.txt; check the path")
    refused(reviews("fit", "latin.txt", *language), "latin.txt is not text in UTF-8: byte 2 is none of it")
    refused(reviews("fit", "empty", *language), "empty has no .txt file; a folder of texts has one for each text")
    refused(reviews("fit", "book.txt", "--model", "kmeans(2)"), "is not of texts; those are language_model(…)")
    assert reviews("fit", "book.txt", *language).code == 0
    refused(reviews("predict", "m", "book.txt"), "m is a model of language, which goes on with a text: likely sample m")
    refused(reviews("sample", "m", "book.txt"), "m is a model of language: it takes --prompt, and no TABLE or --fix")
    refused(reviews("sample", "m", "--prompt", "ß"), "prompt has the character 'ß' at position 0")
    Path("strange.txt").write_text("the cat ß")
    refused(reviews("evaluate", "m", "strange.txt"), "texts has the character 'ß' at position 8")
    assert reviews("fit", "reviews.csv", "--target", "label", "-o", "r").code == 0
    refused(reviews("sample", "r", "--prompt", "a"), "--prompt is for models of language; r holds a TableModel")
