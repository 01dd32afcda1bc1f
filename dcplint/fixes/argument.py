"""Passing a keyword argument in a call."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from dcplint.findings.changes import PassArgument
from dcplint.fixes.tree import node_at, replaced

_LINE = 88  # columns, as formatters have it
_ENDED = cst.TrailingWhitespace()
_TIGHT = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))


def pass_argument(change: PassArgument, module: cst.Module) -> cst.Module | None:
    """`module` with the argument passed; None where the call is not there."""
    call = node_at(module, change.at, cst.Call)
    if call is None:
        return None
    value = _laid_out(cst.parse_expression(change.value), change, call)
    for argument in call.args:
        if argument.keyword is not None and argument.keyword.value == change.name:
            return replaced(module, argument, argument.with_changes(value=value))
    return replaced(module, call, call.with_changes(args=_with(call.args, change.name, value)))


def _laid_out(
    value: cst.BaseExpression, change: PassArgument, call: cst.Call
) -> cst.BaseExpression:
    """A condition in brackets, a line for each part, where one line cannot hold it.

    Only in calls that have a line for each argument, which says how far to indent.
    """
    place = call.whitespace_before_args
    if not isinstance(value, cst.IfExp) or not isinstance(place, cst.ParenthesizedWhitespace):
        return value
    if len(change.name) + len(change.value) + change.at.column < _LINE:
        return value
    outer = place.last_line.value
    inner = cst.ParenthesizedWhitespace(
        indent=place.indent, last_line=cst.SimpleWhitespace(f"{outer}    ")
    )
    return value.with_changes(
        lpar=[cst.LeftParen(whitespace_after=inner)],
        rpar=[cst.RightParen(whitespace_before=place.with_changes(first_line=_ENDED))],
        whitespace_before_if=inner,
        whitespace_before_else=inner,
    )


def _with(args: Sequence[cst.Arg], name: str, value: cst.BaseExpression) -> list[cst.Arg]:
    """The arguments and one more, laid out as those before it."""
    new = cst.Arg(value, keyword=cst.Name(name), equal=_TIGHT)
    if not args:
        return [new]
    *others, last = args
    # What stands between two arguments, line ends included, is kept with the comma of the first.
    between = others[-1].comma if others else cst.MaybeSentinel.DEFAULT
    if not isinstance(between, cst.Comma) or _has_comment(between):
        between = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    closing = {"comma": last.comma, "whitespace_after_arg": last.whitespace_after_arg}
    before = last.with_changes(comma=between, whitespace_after_arg=cst.SimpleWhitespace(""))
    return [*others, before, new.with_changes(**closing)]


def _has_comment(comma: cst.Comma) -> bool:
    return "#" in cst.Module([]).code_for_node(comma)
