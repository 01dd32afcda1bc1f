"""Removing a fallback that never runs, and keeping the failure where its value is missing."""

from __future__ import annotations

import libcst as cst

from dcplint.findings.changes import DropFallback
from dcplint.fixes.tree import Replacement, expression_at, replaced

_ATOMS = (cst.Name, cst.Attribute, cst.Call, cst.Subscript)
_HARMLESS = (cst.Assign, cst.AnnAssign, cst.Expr, cst.Import, cst.ImportFrom)


def drop_fallback(change: DropFallback, module: cst.Module) -> cst.Module | None:
    """`module` without the fallback; None where its shape allows no such edit."""
    test = expression_at(module, change.at)
    if test is None:
        return None
    holder = _Holder(test, change.path)
    module.visit(holder)
    found = holder.found
    if holder.is_part:
        return None
    if isinstance(found, (cst.IfExp, cst.BooleanOperation)):
        kept = _kept(found, change.path)
        if kept is None:
            return None
        if holder.line is None:
            return replaced(module, found, kept)
        assertion = _assertion(change.path).body
        return replaced(module, holder.line, holder.line.with_changes(body=assertion))
    if not isinstance(found, cst.If):
        return None
    new = _without(found, change.path)
    return None if new is None else replaced(module, found, new)


class _Holder(cst.CSTVisitor):
    """Finds what a test decides on.

    is_part: it is an `elif`, or an `or` in a longer chain. line: the one that does nothing but
    give `path` the outcome, and would give it itself.
    """

    def __init__(self, test: cst.BaseExpression, path: str) -> None:
        super().__init__()
        self._path = path
        self._test = test
        self.found: cst.CSTNode | None = None
        self.is_part = False
        self.line: cst.SimpleStatementLine | None = None

    def visit_If(self, node: cst.If) -> None:
        if node.test is self._test:
            self.found = node
        if isinstance(node.orelse, cst.If) and node.orelse.test is self._test:
            self.is_part = True

    def visit_SimpleStatementLine(self, node: cst.SimpleStatementLine) -> None:
        (small, *others) = node.body
        if isinstance(small, cst.Assign) and not others and len(small.targets) == 1:
            value = small.value
            tests = (
                value.test if isinstance(value, cst.IfExp) else None,
                value.left if isinstance(value, cst.BooleanOperation) else None,
            )
            if self._test in tests and _code(small.targets[0].target) == self._path:
                self.line = node

    def visit_IfExp(self, node: cst.IfExp) -> None:
        if node.test is self._test:
            self.found = node

    def visit_BooleanOperation(self, node: cst.BooleanOperation) -> None:
        if isinstance(node.left, cst.BooleanOperation) and node.left.left is self._test:
            self.is_part = True
        if node.left is self._test and isinstance(node.operator, cst.Or):
            self.found = node


def _kept(node: cst.IfExp | cst.BooleanOperation, path: str) -> cst.BaseExpression | None:
    """The side of an expression that is left without its fallback."""
    if isinstance(node, cst.BooleanOperation):
        kept = node.left
    else:
        when_none = _null_test(node.test, path)
        if when_none is None:
            return None
        kept = node.orelse if when_none else node.body
    # The brackets of the whole may be what holds several lines together, or an operator apart.
    if kept.lpar or not node.lpar:
        return kept
    if isinstance(kept, _ATOMS) and "\n" not in _code(kept):
        if not any("#" in _code(bracket) for bracket in (*node.lpar, *node.rpar)):
            return kept
    return kept.with_changes(lpar=node.lpar, rpar=node.rpar)


def _without(node: cst.If, path: str) -> Replacement | None:
    """The statement with an assertion in place of the branch that never runs."""
    when_none = _null_test(node.test, path)
    if when_none is None:
        rest = _other_tests(node.test, path)
        if rest is None or node.orelse is not None or not _is_harmless(node.body):
            return None
        if node.test.lpar and not rest.lpar:
            rest = rest.with_changes(lpar=node.test.lpar, rpar=node.test.rpar)
        header = node.body.header if isinstance(node.body, cst.IndentedBlock) else None
        body = cst.IndentedBlock([_assertion(path)], header=header or cst.TrailingWhitespace())
        return node.with_changes(test=rest, body=body)
    otherwise = node.orelse.body if isinstance(node.orelse, cst.Else) else None
    dead, alive = (node.body, otherwise) if when_none else (otherwise, node.body)
    if dead is None or not _is_harmless(dead):
        return None
    if alive is not None and not isinstance(alive, cst.IndentedBlock):
        return None
    first = _assertion(path).with_changes(leading_lines=node.leading_lines)
    return cst.FlattenSentinel([first, *(alive.body if alive is not None else ())])


def _null_test(test: cst.BaseExpression, path: str) -> bool | None:
    """True for `path is None`, False for `path is not None`, None for anything else."""
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
        return None
    (part,) = test.comparisons
    if _code(test.left) != path or _code(part.comparator) != "None":
        return None
    if isinstance(part.operator, cst.Is):
        return True
    return False if isinstance(part.operator, cst.IsNot) else None


def _other_tests(test: cst.BaseExpression, path: str) -> cst.BaseExpression | None:
    """A of `A and path is None`, in whichever order."""
    if not isinstance(test, cst.BooleanOperation) or not isinstance(test.operator, cst.And):
        return None
    if _null_test(test.right, path):
        return test.left
    if _null_test(test.left, path):
        return test.right
    rest = _other_tests(test.left, path)
    return None if rest is None else test.with_changes(left=rest)


def _is_harmless(body: cst.BaseSuite) -> bool:
    """Whether a block only gives values to names, or says something."""
    smalls: list[cst.BaseSmallStatement] = []
    for statement in body.body:
        if isinstance(statement, cst.SimpleStatementLine):
            smalls += statement.body
        elif isinstance(statement, cst.BaseSmallStatement):
            smalls.append(statement)
        else:
            return False
    return all(isinstance(small, _HARMLESS) for small in smalls)


def _assertion(path: str) -> cst.SimpleStatementLine:
    test = cst.parse_expression(f"{path} is not None")
    return cst.SimpleStatementLine([cst.Assert(test)])


def _code(node: cst.CSTNode) -> str:
    return cst.Module([]).code_for_node(node)
