"""The words by which the modules that a contract field passes through are found."""

import pytest

from dcplint.contracts.packs import find_packs
from dcplint.program.related import field_words

_PACKS = find_packs(())


@pytest.mark.parametrize("name", sorted(_PACKS))
def test_no_word_stands_in_modules_of_any_kind(name: str) -> None:
    # `out` is what torch calls a variant of any operator: two thirds of a plugin's modules have it.
    assert [word for word in field_words(_PACKS[name]) if len(word) < 8] == []
