from likely.core.plural import counted, verb


def test_one_thing_is_in_the_singular_and_any_other_number_in_the_plural():
    assert [counted(number, "column") for number in (0, 1, 2)] == ["0 columns", "1 column", "2 columns"]
    assert counted(2, "category", "categories") == "2 categories"
    assert [verb(number, "is", "are") for number in (0, 1, 2)] == ["are", "is", "are"]
