"""Lowering syntax that is newer than the running Python, so that its `ast` can read the rest.

LibCST parses newer grammars than the interpreter it runs on. Each construct is replaced by an
older one that binds the same names on the same lines; what it computes does not matter to linking.
"""

from __future__ import annotations

import re

import libcst as cst

_BRACKET = re.compile(r"[()\[\]{}]")
_DEEPEST = 200  # Python's own limit. LibCST has none and overflows the stack of the process.


def lowered(text: str) -> str | None:
    """`text` with newer constructs replaced; None where LibCST cannot parse it either."""
    if _depth(text) > _DEEPEST:
        return None
    try:
        return cst.parse_module(text).visit(_Lowering()).code
    except (cst.ParserSyntaxError, RecursionError, ValueError):
        return None


def _depth(text: str) -> int:
    """How deep the brackets nest, those in strings and comments included."""
    depth = deepest = 0
    for match in _BRACKET.finditer(text):
        depth = depth + 1 if match[0] in "([{" else max(depth - 1, 0)
        deepest = max(deepest, depth)
    return deepest


class _Lowering(cst.CSTTransformer):
    """One method per construct, named after the Python that introduced it."""

    def leave_ClassDef(
        self, original_node: cst.ClassDef, updated_node: cst.ClassDef
    ) -> cst.ClassDef:
        """3.12: `class C[T]`."""
        return updated_node.with_changes(type_parameters=None)

    def leave_FunctionDef(
        self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef
    ) -> cst.FunctionDef:
        """3.12: `def f[T]`."""
        return updated_node.with_changes(type_parameters=None)

    def leave_TypeAlias(
        self, original_node: cst.TypeAlias, updated_node: cst.TypeAlias
    ) -> cst.BaseSmallStatement:
        """3.12: `type Name = value`."""
        return cst.Assign([cst.AssignTarget(updated_node.name)], updated_node.value)

    def leave_TryStar(
        self, original_node: cst.TryStar, updated_node: cst.TryStar
    ) -> cst.BaseStatement:
        """3.11: `except*`."""
        handlers = [
            cst.ExceptHandler(handler.body, handler.type, handler.name)
            for handler in updated_node.handlers
        ]
        return cst.Try(
            updated_node.body,
            handlers,
            updated_node.orelse,
            updated_node.finalbody,
            leading_lines=updated_node.leading_lines,
        )

    def leave_FormattedString(
        self, original_node: cst.FormattedString, updated_node: cst.FormattedString
    ) -> cst.BaseExpression:
        """3.12: quotes, backslashes and comments inside the braces of an f-string."""
        return _blank_string(original_node)

    def leave_TemplatedString(
        self, original_node: cst.TemplatedString, updated_node: cst.TemplatedString
    ) -> cst.BaseExpression:
        """3.14: t-strings."""
        return _blank_string(original_node)

    def leave_Subscript(
        self, original_node: cst.Subscript, updated_node: cst.Subscript
    ) -> cst.Subscript:
        """3.11: `a[*b]`."""
        plain = [
            element.with_changes(slice=element.slice.with_changes(star=None))
            if isinstance(element.slice, cst.Index)
            else element
            for element in updated_node.slice
        ]
        return updated_node.with_changes(slice=plain)


def _blank_string(node: cst.BaseExpression) -> cst.BaseExpression:
    """An empty string that takes up as many lines as `node`."""
    breaks = cst.Module([]).code_for_node(node).count("\n")
    quote = '"""' if breaks else '"'
    return cst.SimpleString(quote + "\n" * breaks + quote)
