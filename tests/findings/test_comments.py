import io
import sysconfig
import tokenize
from pathlib import Path

import pytest

from dcplint.findings.comments import Comment, comments

STDLIB = Path(sysconfig.get_path("stdlib"))
MODULES = sorted(path.name for path in STDLIB.glob("[a-d]*.py"))


def by_tokenize(source: str) -> list[Comment]:
    """What `comments` does, told by Python's own tokenizer."""
    found: list[Comment] = []
    waiting: list[tuple[str, int, int]] = []
    first, begun, decorating = 0, False, False
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            waiting.append((token.string, token.start[0], token.start[1] + 1))
        elif token.type == tokenize.NEWLINE:
            begun = False
            if not decorating:
                found += (Comment(*comment, first, token.start[0]) for comment in waiting)
                waiting.clear()
                first = 0
        elif token.type not in (
            tokenize.NL,
            tokenize.INDENT,
            tokenize.DEDENT,
            tokenize.ENDMARKER,
        ):
            first = first or token.start[0]
            if not begun:
                begun, decorating = True, token.string == "@"
    return found + [Comment(*comment, comment[1], comment[1]) for comment in waiting]


@pytest.mark.parametrize("name", MODULES)
def test_agrees_with_the_tokenizer(name: str) -> None:
    with tokenize.open(STDLIB / name) as file:
        source = file.read()
    assert list(comments(source)) == by_tokenize(source)


def extents(source: str) -> list[tuple[int, int, int]]:
    return [(c.line, c.first, c.last) for c in comments(source)]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x = 1  # c", (1, 1, 1)),
        ("# c\nx = 1\n", (1, 2, 2)),
        ("# c\n\n# d\n@deco(\n  a)\n@other\nclass A(\n  B,\n):\n  pass\n", (1, 4, 9)),
        ("f(\n  a,  # c\n  b)\n", (2, 1, 3)),
        ("f(\n  # c\n  b)\n", (2, 1, 3)),
        ("x = 1 + \\\n  2  # c\n", (2, 1, 2)),
        ('x = """\n# no\n"""  # c\n', (3, 1, 3)),
        ("x = 1\n# c\n", (2, 2, 2)),
        ("@deco  # c\ndef f(): pass\n", (1, 1, 2)),
        ("x = 1  # c\r\ny\r\n", (1, 1, 1)),
        ("a\rb  # c\r", (2, 2, 2)),
        ("@@ broken (\nx  # c\n", (2, 1, 3)),
        (") ) x  # c\ny\n", (1, 1, 1)),
        ('x = "unterminated\ny  # c\n', (2, 2, 2)),
        ('t"{a:{"b"}}"  # c\n', (1, 1, 1)),
        ('"""open # no\n', None),
        ("x = '# no'\n", None),
        ("x = r'\\'# no'\n", None),
    ],
)
def test_extent(source: str, expected: tuple[int, int, int] | None) -> None:
    assert extents(source)[:1] == ([expected] if expected else [])
