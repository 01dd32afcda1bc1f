"""Stating an attribute in the body of a class, in the style of its file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import libcst as cst

from dcplint.findings.changes import StateAttribute
from dcplint.fixes.tree import leading, replaced

_BLANK = cst.EmptyLine(indent=False)


def state_attribute(
    change: StateAttribute, module: cst.Module, lines: Sequence[str]
) -> cst.Module | None:
    """`module` with the attribute stated in its first class; None where it already is."""
    found = _first_class(module)
    line, at = lines[change.at.line - 1], change.at
    if found is None or not line[at.column - 1 : at.end_column - 1].endswith(
        f" {found.name.value}"
    ):
        return None  # another class than the rule saw
    annotation = _annotation(change, lines, found)
    statement = cst.SimpleStatementLine([_statement(change, annotation)])
    if isinstance(found.body, cst.SimpleStatementSuite):
        return replaced(module, found.body, _opened(found.body, statement))
    body = found.body
    assert isinstance(body, cst.IndentedBlock)
    for held in body.body:
        stated = _declared(held, change.name)
        if isinstance(stated, cst.AnnAssign) and stated.value is None:
            value = cst.Name(str(change.value))
            return replaced(module, stated, stated.with_changes(value=value, equal=_EQUAL))
        if stated is not None:
            return None
    return replaced(module, body, body.with_changes(body=_placed(body.body, statement, change)))


_EQUAL = cst.AssignEqual()


def _first_class(module: cst.Module) -> cst.ClassDef | None:
    for statement in module.body:
        if isinstance(statement, cst.ClassDef):
            return statement
        if isinstance(statement, cst.If):  # what an indented class is put into
            inner = statement.body.body[0]
            return inner if isinstance(inner, cst.ClassDef) else None
    return None


def _annotation(change: StateAttribute, lines: Iterable[str], node: cst.ClassDef) -> str:
    """How such attributes are annotated: in this class, in the file; else as its other flags."""
    names = "|".join(map(re.escape, {change.name, *change.siblings}))
    statement = re.compile(rf"\s+(?:{names})[ \t]*(?::[ \t]*([\w.]+(?:\[[\w.]+\])?)[ \t]*)?(?:=|$)")
    here: Counter[str] = Counter()
    elsewhere: Counter[str] = Counter()
    for number, line in enumerate(lines, 1):
        match = statement.match(line)
        if match:
            inside = change.scope.line <= number <= change.scope.end_line
            (here if inside else elsewhere)[match[1] or ""] += 1
    counts = here or elsewhere or Counter(map(_flag_annotation, _flags(node)))
    return counts.most_common(1)[0][0] if counts else ""


def _flags(node: cst.ClassDef) -> Iterator[cst.Assign | cst.AnnAssign]:
    """The attributes of a class that are plainly true or false."""
    for statement in node.body.body:
        for small in statement.body if isinstance(statement, cst.SimpleStatementLine) else ():
            if isinstance(small, (cst.Assign, cst.AnnAssign)):
                if isinstance(small.value, cst.Name) and small.value.value in ("True", "False"):
                    yield small


def _flag_annotation(flag: cst.Assign | cst.AnnAssign) -> str:
    if isinstance(flag, cst.Assign):
        return ""
    return cst.Module([]).code_for_node(flag.annotation.annotation)


def _statement(change: StateAttribute, annotation: str) -> cst.BaseSmallStatement:
    name, value = cst.Name(change.name), cst.Name(str(change.value))
    if annotation:
        return cst.AnnAssign(name, cst.Annotation(cst.parse_expression(annotation)), value)
    return cst.Assign([cst.AssignTarget(name)], value)


def _opened(
    suite: cst.SimpleStatementSuite, statement: cst.SimpleStatementLine
) -> cst.IndentedBlock:
    """`class C(B): pass` with a body of its own."""
    kept = [s for s in suite.body if not _is_filler(s)]
    line = cst.SimpleStatementLine(kept, trailing_whitespace=suite.trailing_whitespace)
    if kept:
        return cst.IndentedBlock([statement, line])
    return cst.IndentedBlock(
        [statement.with_changes(trailing_whitespace=suite.trailing_whitespace)]
    )


def _placed(
    body: Sequence[cst.BaseStatement], statement: cst.SimpleStatementLine, change: StateAttribute
) -> list[cst.BaseStatement]:
    """The body with `statement` behind its siblings, else before the other attributes."""
    beside = [n for n, s in enumerate(body) if any(_declared(s, name) for name in change.siblings)]
    if beside:
        position = beside[-1] + 1
        return [*body[:position], statement, *body[position:]]
    documented = bool(body) and _is_docstring(body[0])
    above, below = list(body[:documented]), list(body[documented:])
    filler = below[0] if below else None
    if isinstance(filler, cst.SimpleStatementLine) and _is_filler(filler.body[0]):
        del below[0]
        statement = statement.with_changes(
            leading_lines=filler.leading_lines, trailing_whitespace=filler.trailing_whitespace
        )
    elif documented and (not below or _begins_blank(below[0])):
        statement = statement.with_changes(leading_lines=[_BLANK])
    if below:
        below[0] = _spaced(below[0])
    return [*above, statement, *below]


def _spaced(below: cst.BaseStatement) -> cst.BaseStatement:
    """The statement after a new one: attributes stand together, all else behind a blank line."""
    above = list(leading(below))
    if isinstance(below, cst.SimpleStatementLine) and not any(line.comment for line in above):
        return below.with_changes(leading_lines=[])
    if not _begins_blank(below):
        above.insert(0, _BLANK)
    return below.with_changes(leading_lines=above)


def _begins_blank(statement: cst.BaseStatement) -> bool:
    above = leading(statement)
    return bool(above) and above[0].comment is None


def _declared(statement: cst.BaseStatement, name: str) -> cst.BaseSmallStatement | None:
    """The part of a line that says something of the attribute `name`."""
    for small in statement.body if isinstance(statement, cst.SimpleStatementLine) else ():
        if isinstance(small, cst.AnnAssign):
            targets: list[cst.BaseExpression] = [small.target]
        elif isinstance(small, cst.Assign):
            targets = [target.target for target in small.targets]
        else:
            continue
        if any(isinstance(target, cst.Name) and target.value == name for target in targets):
            return small
    return None


def _is_docstring(statement: cst.BaseStatement) -> bool:
    return (
        isinstance(statement, cst.SimpleStatementLine)
        and isinstance(statement.body[0], cst.Expr)
        and isinstance(statement.body[0].value, (cst.SimpleString, cst.ConcatenatedString))
    )


def _is_filler(small: cst.BaseSmallStatement) -> bool:
    if isinstance(small, cst.Expr):
        return isinstance(small.value, cst.Ellipsis)
    return isinstance(small, cst.Pass)
