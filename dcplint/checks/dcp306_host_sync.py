"""Every step waits for the device, because the host reads a length that lies there.

## What it flags
`.item()`, `.tolist()`, `.cpu()`, `.to("cpu")`, `int(…)`, or a test of the value, where a builder or
impl that serves DCP applies it to lengths of the batch that the engine keeps on the device.

## Why it breaks
The host stops until the device has caught up, and can't prepare the next step meanwhile: no overlap
under asynchronous scheduling, and no captured graph. What is wanted is mostly a bound, and bounds
lie on the host: of one rank's share too, `ceil(L / (N * I)) * I`.

## Bad
```python
from vllm.v1.attention.backend import AttentionImpl, CommonAttentionMetadata

class MyImpl(AttentionImpl):
    supports_dcp = True
    can_return_lse_for_decode = True

    def splits(self, meta: CommonAttentionMetadata):
        return self.plan(int(meta.dcp_local_seq_lens.max()))
```

## Good
```python
from vllm.v1.attention.backend import AttentionImpl, CommonAttentionMetadata

class MyImpl(AttentionImpl):
    supports_dcp = True
    can_return_lse_for_decode = True

    def splits(self, meta: CommonAttentionMetadata):
        chunk = self.dcp_world_size * self.interleave
        return self.plan(-(-meta.max_seq_len // chunk) * self.interleave)
```

## How it is confirmed
Not at all: the harness runs on the CPU, where nothing waits for a device.

## Known limits
Operations that wait on their own account (`nonzero`, an index of booleans) are not looked at. What
is copied into a buffer, or moved to a device that can't be told, is taken to lie on the host.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dcplint.checks.base import Context, Rule
from dcplint.checks.length_evidence import may_serve, serves_under_dcp, trail
from dcplint.facts.expressions import shorten
from dcplint.facts.positions import position
from dcplint.findings.model import Evidence, Finding, Location, Severity
from dcplint.flow.functions import Function, callee_name, expressions
from dcplint.source.location import Tree
from dcplint.source.tree import children, walk
from dcplint.units.lattice import LENGTHS, UNITS, Value

RULE = Rule(
    code="DCP306",
    name="host-sync",
    summary="flags lengths on the device that the host reads in every step",
    severity=Severity.NOTE,
    since="0.1.0",
    probe="none: on the CPU nothing waits for a device",
)

_READERS = frozenset({"item", "tolist", "cpu"})
_NUMBERS = frozenset({"int", "float", "bool"})
_QUANTIFIERS = frozenset({"any", "all"})
_REDUCTIONS = frozenset({"max", "min", "sum", "amax", "amin"})
# Every way begins with a letter of its own, which makes a search five times as fast.
_READ = re.compile(
    r"\.(?:item|tolist|cpu|any|all)\(|\"cpu\"|'cpu'|int\(|float\(|bool\(",
)
_TESTED = re.compile(
    r"(?:if|while|assert)\b(?=.*[<>=]).*(?:\]|\.(?:max|min|sum|amax|amin)\()",
)
_CALLERS = 2  # callers of callers


def check(context: Context) -> Iterator[Finding]:
    """Yield a finding per statement in which the host waits for a length."""
    if not any(length.on_device for length in context.contract.lengths):
        return
    for function in context.fields.universe.matching(_may_read, lambda o: may_serve(context, o)):
        if function.module.tree is not Tree.PROJECT or not serves_under_dcp(context, function):
            continue
        for statement in function.homes:
            if next(_reads(context, function, statement), None) is None:
                continue
            if not context.fields.tracer.can_run(function, statement):
                continue
            found = next(_waits(context, function, statement), None)
            if found is not None:
                if not _is_declared(context, function, statement):
                    yield _finding(context, function, *found)


def _may_read(text: str) -> bool:
    """Whether a function's text seems to bring something to the host."""
    return _READ.search(text) is not None or _TESTED.search(text) is not None


def _waits(
    context: Context, function: Function, statement: ast.stmt
) -> Iterator[tuple[ast.expr, Value]]:
    """(expression, length) of what `statement` reads on the host."""
    for node, read in _reads(context, function, statement):
        value = context.units.value(function, statement, _reduced(read))
        if isinstance(value, Value) and value.on_device and value.unit.counts in LENGTHS:
            yield node, value


def _reads(
    context: Context, function: Function, statement: ast.stmt
) -> Iterator[tuple[ast.expr, ast.expr]]:
    """(expression, tensor) of what the host would wait for, did the tensor lie on the device."""
    if isinstance(statement, (ast.If, ast.While, ast.Assert)):
        yield from ((statement.test, part) for part in _decides(statement.test))
    queue: list[ast.AST] = list(expressions(statement))
    for node in queue:  # grows as it is read
        if isinstance(node, ast.IfExp):
            truth = context.fields.tracer.scenario.truth(function, node.test)
            yield from ((node.test, part) for part in _decides(node.test))
            queue.append(node.test)
            queue += [] if truth is False else [node.body]
            queue += [] if truth is True else [node.orelse]
            continue
        if isinstance(node, ast.Call):
            read = _read(node)
            if read is not None:
                yield node, read
        if not isinstance(node, (ast.Lambda, ast.comprehension)):
            inner = children(node)
            queue += [n.value if isinstance(n, ast.keyword) else n for n in inner]


def _read(call: ast.Call) -> ast.expr | None:
    """What a call brings to the host."""
    name = callee_name(call)
    if isinstance(call.func, ast.Name):
        return call.args[0] if name in _NUMBERS and len(call.args) == 1 else None
    if not isinstance(call.func, ast.Attribute):
        return None
    if name in _READERS or (name == "to" and _is_to_host(call)):
        return call.func.value
    return None


def _reduced(node: ast.expr) -> ast.expr:
    """The tensor that `x.max()` and the like are worked out of."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if callee_name(node) not in _REDUCTIONS:
            break
        node = node.func.value
    return node


def _is_to_host(call: ast.Call) -> bool:
    """Whether `x.to(…)` names the host, and waits."""
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    waits = given.get("non_blocking", ast.Constant(False))
    if None in given or not (isinstance(waits, ast.Constant) and waits.value is False):
        return False
    places = [*call.args[:1], *([given["device"]] if "device" in given else [])]
    names = [n.args[0] if isinstance(n, ast.Call) and n.args else n for n in places]
    return any(isinstance(n, ast.Constant) and n.value == "cpu" for n in names)


def _decides(test: ast.expr) -> Iterator[ast.expr]:
    """The tensors whose values a test turns on."""
    if isinstance(test, ast.BoolOp):
        for part in test.values:
            yield from _decides(part)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _decides(test.operand)
    elif isinstance(test, ast.Compare):
        compares = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)
        if all(isinstance(operator, compares) for operator in test.ops):
            yield from (test.left, *test.comparators)
    elif isinstance(test, ast.Call) and callee_name(test) in _QUANTIFIERS:
        if isinstance(test.func, ast.Attribute):
            yield from _decides(test.func.value)
            yield from (part for argument in test.args for part in _decides(argument))


def _is_declared(
    context: Context, function: Function, statement: ast.stmt, depth: int = _CALLERS
) -> bool:
    """Whether a statement, or every call of its function, lies where waiting is allowed."""
    home = function.homes[statement]
    scopes = [statement]
    while home.parent is not None:
        scopes.append(home.parent)
        home = function.homes[home.parent]
    allowed = context.contract.vocabulary.syncs
    universe = context.fields.universe
    for scope in scopes:
        if isinstance(scope, (ast.With, ast.AsyncWith)):
            for call in (n for i in scope.items for n in walk(i.context_expr)):
                if isinstance(call, ast.Call) and universe.called(function, call) in allowed:
                    return True
    sites = universe.callers(function) if depth else ()
    return bool(sites) and all(
        _is_declared(context, site.function, site.statement, depth - 1) for site in sites
    )


def _finding(context: Context, function: Function, node: ast.expr, value: Value) -> Finding:
    return RULE.finding(
        f"`{function.qualname}` waits for the device in every step: `{shorten(node)}` reads the "
        f"{value.unit} on the host",
        context.program.location(function.module, position(node)),
        symbol=function.qualname,
        evidence=(*trail(context, value), *_on_host(context, value)),
    )


def _on_host(context: Context, value: Value) -> Iterator[Evidence]:
    """What the pack says the host has of the same tokens."""
    for fact in context.contract.lengths:
        unit = UNITS[fact.unit]
        if fact.on_device or unit.space is not value.unit.space:
            continue
        if unit.counts is value.unit.counts:
            yield Evidence(
                f"the host has the {unit} in `{fact.name}` ({fact.source.text})",
                Location(fact.source.pack, fact.source.line, tree=Tree.PACK),
            )
