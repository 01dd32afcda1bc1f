"""From text to `ast`: outlines, single functions, and syntax newer than the running Python."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dcplint.source.outline import Outline, outline
from dcplint.source.text import UnreadableSource
from dcplint.source.tree import FUNCTIONS, Definition, is_deeper, walk

_DEEPEST = 150  # nodes; rules recurse, several calls a node. Real code stays below 40


@dataclass(frozen=True, slots=True)
class ParsedOutline:
    """tree: the module, function bodies blanked. ends: real last line of blanked functions.

    deep: the functions that were blanked because they nest too deeply.
    """

    tree: ast.Module
    ends: dict[int, int]
    deep: tuple[UnreadableSource, ...] = ()


def parse_outline(text: str, wanted: Iterable[int]) -> ParsedOutline:
    """Parse the outline of `text`; the whole text where the outline is not valid Python.

    The functions around the offsets `wanted` keep their bodies. Raises UnreadableSource where
    neither the running Python nor LibCST can parse the text.
    """
    outlined = outline(text, wanted)
    tree = _try_parse(outlined.text)
    parsed = (tree, outlined.ends) if tree is not None else _parse_lowered(text, outlined)
    return _levelled(*parsed)


def _levelled(tree: ast.Module, ends: dict[int, int]) -> ParsedOutline:
    """The outline without what nests too deeply: bodies of functions, values outside of them.

    Raises UnreadableSource where the module's own statements do.
    """
    if not is_deeper(tree, _DEEPEST):
        return ParsedOutline(tree, ends)
    deep = []
    for node in walk(tree):
        if isinstance(node, FUNCTIONS) and is_deeper(node, _DEEPEST):
            deep.append(_too_deep(node))
            ends = {**ends, node.lineno: node.end_lineno or node.lineno}
            node.body = [ast.copy_location(ast.Expr(ast.Constant(...)), node.body[0])]
    for node in _outside_functions(tree):
        for name, value in ast.iter_fields(node):
            if isinstance(value, ast.expr) and is_deeper(value, _DEEPEST):
                setattr(node, name, ast.copy_location(ast.Name("?", ast.Load()), value))
    for node in tree.body:
        if is_deeper(node, 6 * _DEEPEST):
            raise _too_deep(node)
    return ParsedOutline(tree, ends, tuple(deep))


def _outside_functions(tree: ast.Module) -> Iterator[ast.stmt]:
    """The statements of a module and of its classes."""
    queue: list[ast.AST] = list(tree.body)
    for node in queue:  # grows as it is read
        if isinstance(node, ast.stmt):
            yield node
        if not isinstance(node, (ast.expr, *FUNCTIONS)):
            queue += ast.iter_child_nodes(node)


def _too_deep(node: ast.stmt) -> UnreadableSource:
    return UnreadableSource(
        f"nests more than {_DEEPEST} levels deep here; nothing of it is checked until it is split",
        node.lineno,
        node.col_offset + 1,
    )


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
    except (RecursionError, MemoryError) as error:
        raise UnreadableSource("cannot be parsed: nested too deeply, or too large") from error
    except ValueError as error:
        raise UnreadableSource(f"cannot be parsed: {error}") from error


def parse_function(source: str, first: int, last: int) -> Definition:
    """The function `source`, which stands in lines `first` to `last` (1-based, with decorators).

    Line numbers and columns of the result are those of the file. Raises UnreadableSource.
    """
    # The function keeps its line numbers when as many lines stand before it as in the file; an
    # indented one needs a block to stand in.
    opening = "if 1:" if source[:1] in (" ", "\t") else ""
    above = "\n" * (first - 2) + opening + "\n" if first > 1 else ""
    return function_in(parse_text(above + source), first, last)


def function_in(tree: ast.Module, first: int, last: int) -> Definition:
    """The function of a module that stands in these lines. Raises UnreadableSource."""
    for node in walk(tree):
        if isinstance(node, FUNCTIONS) and first <= node.lineno <= last:
            return node
    raise UnreadableSource("holds no function here", first)


def check_depth(node: Definition) -> None:
    """Raises UnreadableSource where a function nests too deeply for rules to follow it."""
    if is_deeper(node, _DEEPEST):
        raise _too_deep(node)


def _try_parse(text: str) -> ast.Module | None:
    try:
        return _parse(text)
    except (SyntaxError, RecursionError, MemoryError, ValueError):
        return None


def _parse(text: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # invalid escapes in checked code are not our business
        return ast.parse(text)
