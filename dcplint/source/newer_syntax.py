"""Lowering syntax that is newer than the running Python, so that its `ast` can read the rest.

LibCST parses newer grammars than the interpreter it runs on. Each construct gives way to an older
one that binds the same names and takes up the same lines; what it computes does not matter to
linking. Columns after it may differ.
"""

from __future__ import annotations

import libcst as cst

from dcplint.source.concrete import parse_concrete


def lowered(text: str) -> str | None:
    """`text` with newer constructs replaced; None where LibCST cannot parse it either."""
    module = parse_concrete(text)
    try:
        return None if module is None else module.visit(_Lowering()).code
    except RecursionError:
        return None


class _Lowering(cst.CSTTransformer):
    """One method per construct, named after the Python that introduced it."""

    def leave_ClassDef(
        self, original_node: cst.ClassDef, updated_node: cst.ClassDef
    ) -> cst.ClassDef:
        """3.12: `class C[T]`."""
        if updated_node.type_parameters is None:
            return updated_node
        gap = _gap(updated_node.type_parameters)
        return updated_node.with_changes(type_parameters=None, whitespace_after_name=gap)

    def leave_FunctionDef(
        self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef
    ) -> cst.FunctionDef:
        """3.12: `def f[T]`."""
        if updated_node.type_parameters is None:
            return updated_node
        gap = _gap(updated_node.type_parameters)
        return updated_node.with_changes(type_parameters=None, whitespace_after_name=gap)

    def leave_TypeAlias(
        self, original_node: cst.TypeAlias, updated_node: cst.TypeAlias
    ) -> cst.BaseSmallStatement:
        """3.12: `type Name = value`."""
        parameters = updated_node.type_parameters
        gap = cst.SimpleWhitespace(" ") if parameters is None else _gap(parameters)
        target = cst.AssignTarget(updated_node.name, whitespace_before_equal=gap)
        return cst.Assign([target], updated_node.value, semicolon=updated_node.semicolon)

    def leave_TryStar(
        self, original_node: cst.TryStar, updated_node: cst.TryStar
    ) -> cst.BaseStatement:
        """3.11: `except*`."""
        handlers = [
            _parenthesized(
                cst.ExceptHandler(
                    handler.body,
                    handler.type,
                    handler.name,
                    leading_lines=handler.leading_lines,
                    whitespace_before_colon=handler.whitespace_before_colon,
                )
            )
            for handler in updated_node.handlers
        ]
        return cst.Try(
            updated_node.body,
            handlers,
            updated_node.orelse,
            updated_node.finalbody,
            leading_lines=updated_node.leading_lines,
        )

    def leave_ExceptHandler(
        self, original_node: cst.ExceptHandler, updated_node: cst.ExceptHandler
    ) -> cst.ExceptHandler:
        """3.14: `except A, B:`."""
        return _parenthesized(updated_node)

    def visit_FormattedString(self, node: cst.FormattedString) -> bool:
        """Replaced as a whole."""
        return False

    def leave_FormattedString(
        self, original_node: cst.FormattedString, updated_node: cst.FormattedString
    ) -> cst.BaseExpression:
        """3.12: quotes, backslashes and comments inside the braces of an f-string."""
        return _call(original_node)

    def visit_TemplatedString(self, node: cst.TemplatedString) -> bool:
        """Replaced as a whole."""
        return False

    def leave_TemplatedString(
        self, original_node: cst.TemplatedString, updated_node: cst.TemplatedString
    ) -> cst.BaseExpression:
        """3.14: t-strings."""
        return _call(original_node)

    def visit_ConcatenatedString(self, node: cst.ConcatenatedString) -> bool:
        """Replaced as a whole."""
        return False

    def leave_ConcatenatedString(
        self, original_node: cst.ConcatenatedString, updated_node: cst.ConcatenatedString
    ) -> cst.BaseExpression:
        """Strings in a row of which one is an f-string or a t-string."""
        part: cst.BaseExpression = original_node
        while isinstance(part, cst.ConcatenatedString):
            if not isinstance(part.left, cst.SimpleString):
                return _call(original_node)
            part = part.right
        return original_node if isinstance(part, cst.SimpleString) else _call(original_node)

    def leave_Index(self, original_node: cst.Index, updated_node: cst.Index) -> cst.Index:
        """3.11: `a[*b]`."""
        if updated_node.star is None:
            return updated_node
        return updated_node.with_changes(star=None, whitespace_after_star=None)

    def leave_Param(self, original_node: cst.Param, updated_node: cst.Param) -> cst.Param:
        """3.11: `*args: *Ts`."""
        annotation = updated_node.annotation
        if annotation is None or not isinstance(annotation.annotation, cst.StarredElement):
            return updated_node
        plain = annotation.with_changes(annotation=annotation.annotation.value)
        return updated_node.with_changes(annotation=plain)


def _parenthesized(handler: cst.ExceptHandler) -> cst.ExceptHandler:
    caught = handler.type
    if not isinstance(caught, cst.Tuple) or caught.lpar:
        return handler
    caught = caught.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return handler.with_changes(type=caught, whitespace_after_except=cst.SimpleWhitespace(" "))


def _gap(node: cst.CSTNode) -> cst.SimpleWhitespace:
    """White space that takes up as many lines as `node`."""
    breaks = cst.Module([]).code_for_node(node).count("\n")
    return cst.SimpleWhitespace("\\\n" * breaks)


def _call(node: cst.BaseExpression) -> cst.Call:
    """A call, whose value nobody can know, that takes up as many lines as `node`."""
    return cst.Call(cst.Name("f"), whitespace_before_args=_gap(node))
