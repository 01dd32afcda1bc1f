"""From text to `ast`: outlines, single functions, and syntax newer than the running Python."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable
from dataclasses import dataclass

from dcplint.source.outline import Outline, outline
from dcplint.source.text import UnreadableSource
from dcplint.source.tree import walk


@dataclass(frozen=True, slots=True)
class ParsedOutline:
    """tree: the module, function bodies blanked. ends: real last line of blanked functions."""

    tree: ast.Module
    ends: dict[int, int]


def parse_outline(text: str, wanted: Iterable[int]) -> ParsedOutline:
    """Parse the outline of `text`; the whole text where the outline is not valid Python.

    The functions around the offsets `wanted` keep their bodies. Raises UnreadableSource where
    neither the running Python nor LibCST can parse the text.
    """
    outlined = outline(text, wanted)
    tree = _try_parse(outlined.text)
    if tree is not None:
        return ParsedOutline(tree, outlined.ends)
    return ParsedOutline(*_parse_lowered(text, outlined))


def parse_text(text: str) -> ast.Module:
    """Parse `text` whole, with LibCST's help where its syntax is newer than the running Python.

    Raises UnreadableSource with the place of the syntax error.
    """
    return _parse_lowered(text, Outline(text, {}))[0]


def _parse_lowered(text: str, outlined: Outline) -> tuple[ast.Module, dict[int, int]]:
    """`text` as it stands, else its outline lowered, else the whole of it lowered."""
    try:
        return _parse(text), {}
    except SyntaxError as error:
        from dcplint.source.newer_syntax import lowered

        for candidate, ends in ((outlined.text, outlined.ends), (text, {})):
            older = lowered(candidate)
            tree = _try_parse(older) if older is not None else None
            if tree is not None:
                return tree, ends
            if candidate == text:
                break
        raise UnreadableSource(
            f"has a syntax error: {error.msg}", error.lineno or 1, max(error.offset or 1, 1)
        ) from error
    except (RecursionError, MemoryError, ValueError) as error:
        raise UnreadableSource(f"cannot be parsed: {error or 'nested too deeply'}") from error


def parse_function(
    lines: list[str], first: int, last: int
) -> ast.FunctionDef | ast.AsyncFunctionDef:
    """The function that stands in lines `first` to `last` (1-based, decorators included).

    Line numbers and columns of the result are those of the file. Raises UnreadableSource.
    """
    # The function keeps its line numbers when as many lines stand before it as in the file; an
    # indented one needs a block to stand in.
    opening = "if 1:" if lines[first - 1][:1] in " \t" else ""
    above = "\n" * (first - 2) + opening + "\n" if first > 1 else ""
    tree = parse_text(above + "\n".join(lines[first - 1 : last]))
    for node in walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return node
    raise UnreadableSource("holds no function here", first)


def _try_parse(text: str) -> ast.Module | None:
    try:
        return _parse(text)
    except (SyntaxError, RecursionError, MemoryError, ValueError):
        return None


def _parse(text: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # invalid escapes in checked code are not our business
        return ast.parse(text)
