"""What is generated is up to date. Where it is not: `python -m docs.generate`."""

import re
from pathlib import Path

import pytest

from docs.generate import configuration, picture, rules


@pytest.mark.parametrize(
    ("path", "text"),
    {**rules.pages(), **configuration.pages()}.items(),
    ids=lambda a: getattr(a, "name", ""),
)
def test_pages_and_tables(path: Path, text: str) -> None:
    assert path.read_text(encoding="utf-8") == text


def test_no_page_is_left_over() -> None:
    assert rules.left_over() == []


def test_the_picture() -> None:
    """But for numbers: those of lines in packs move with every fact that is added."""
    ((path, text),) = picture.pages().items()
    shown = path.read_text(encoding="utf-8")
    assert re.sub(r"\d+", "0", shown) == re.sub(r"\d+", "0", text)


def test_a_code_without_a_picture_is_refused() -> None:
    assert picture._style("1", "") == ' font-weight="bold"'
    with pytest.raises(ValueError, match="'4' has no picture"):
        picture._style("4", "")
