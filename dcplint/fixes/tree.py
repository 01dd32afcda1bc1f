"""Finding and replacing nodes of a concrete syntax tree by where they stand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider

from dcplint.source.location import Location

N = TypeVar("N", bound=cst.CSTNode)
Replacement = cst.CSTNode | cst.FlattenSentinel[cst.CSTNode] | cst.RemovalSentinel


def leading(statement: cst.BaseStatement) -> Sequence[cst.EmptyLine]:
    """The empty lines and comments above a statement; every kind of statement has them."""
    # Their common base does not say so.
    lines: Sequence[cst.EmptyLine] = statement.leading_lines  # type: ignore[attr-defined]
    return lines


def node_at(module: cst.Module, at: Location, kind: type[N]) -> N | None:
    """The node of that kind that spans `at`; None where there is none."""
    return next((node for node in _nodes_at(module, at) if isinstance(node, kind)), None)


def expression_at(module: cst.Module, at: Location) -> cst.BaseExpression | None:
    """The expression that spans `at`, the outermost of several; None where there is none."""
    # Not by `node_at`: an abstract class is no `type[N]`.
    found = (node for node in _nodes_at(module, at) if isinstance(node, cst.BaseExpression))
    return next(found, None)


def _nodes_at(module: cst.Module, at: Location) -> Iterator[cst.CSTNode]:
    wrapper = MetadataWrapper(module, unsafe_skip_copy=True)  # a fresh tree shares no nodes
    return (n for n, span in wrapper.resolve(PositionProvider).items() if _is_at(span, at))


def _is_at(span: CodeRange, at: Location) -> bool:
    start, end = span.start, span.end
    return (start.line, start.column + 1, end.line, end.column + 1) == (
        at.line,
        at.column,
        at.end_line,
        at.end_column,
    )


def replaced(module: cst.Module, node: cst.CSTNode, new: Replacement) -> cst.Module:
    """`module` with `new` in place of `node`."""
    changed = module.visit(_Replacing(node, new))
    assert isinstance(changed, cst.Module)
    return changed


class _Replacing(cst.CSTTransformer):
    def __init__(self, node: cst.CSTNode, new: Replacement) -> None:
        super().__init__()
        self._node = node
        self._new = new

    # Another kind of node may come in its place, which LibCST allows and its types do not.
    def on_leave(  # type: ignore[override]
        self, original_node: cst.CSTNode, updated_node: cst.CSTNode
    ) -> Replacement:
        return self._new if original_node is self._node else updated_node
