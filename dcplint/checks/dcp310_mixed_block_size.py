"""A block of one rank's tokens is taken for one of the sequence's, or the other way round.

## What it flags
A block of the KV cache holds `block_size` tokens on each rank, and stands for as many times that of
a sequence whose cache the ranks share as there are ranks. With DCP on,

- blocks of a request are counted by the size that one rank holds: ids of blocks are indexed or cut
  by `cdiv(num_tokens, cache_config.block_size)`;
- a size that has been multiplied by the DCP size is multiplied again, or handed to what multiplies
  it, as the constructor of a cache spec; or one that has not, to what wants it multiplied;
- the sizes of all groups of a model are multiplied, those whose state every rank has whole too.

## Why it breaks
Twice the blocks are loaded, filled or reported, or half of them; block hashes are asked for at
boundaries that nobody hashed. It shows as assertions in the scheduler, as cache hits that never
come, or as cached tokens of another place in the sequence.

## Bad
```python
from vllm.config import VllmConfig
from vllm.distributed.kv_transfer.kv_connector.v1.base import KVConnectorBase_V1
from vllm.utils.math_utils import cdiv
from vllm.v1.core.kv_cache_manager import KVCacheBlocks

class MyConnector(KVConnectorBase_V1):
    def __init__(self, vllm_config: VllmConfig, role):
        self.block_size = vllm_config.cache_config.block_size

    def update_state_after_alloc(self, request, blocks: KVCacheBlocks, num_external_tokens):
        count = cdiv(num_external_tokens, self.block_size)
        self.loads[request.request_id] = blocks.get_block_ids()[0][:count]
```

## Good
```python
from vllm.config import VllmConfig
from vllm.distributed.kv_transfer.kv_connector.v1.base import KVConnectorBase_V1
from vllm.utils.math_utils import cdiv
from vllm.v1.core.kv_cache_manager import KVCacheBlocks

class MyConnector(KVConnectorBase_V1):
    def __init__(self, vllm_config: VllmConfig, role):
        dcp_size = vllm_config.parallel_config.decode_context_parallel_size
        self.block_size = vllm_config.cache_config.block_size * dcp_size

    def update_state_after_alloc(self, request, blocks: KVCacheBlocks, num_external_tokens):
        count = cdiv(num_external_tokens, self.block_size)
        self.loads[request.request_id] = blocks.get_block_ids()[0][:count]
```

## How it is confirmed
The scheduler of an engine with DCP on, and a request whose last block is not full.

## Known limits
Sizes, numbers of tokens and ids of blocks are known where the pack names them, through variables,
attributes, fields of records, parameters, results and loops, not through dictionaries, `partial`,
`replace` and `getattr`. Only factors that stand side by side are compared: a product of three may
be of anything. Ids that a function is handed under a name of its own are not looked for. Blocks
that a storage of its own counts are its own business: only ids that the engine handed out tell.
Where a class, or what makes its instances, refuses DCP, nothing is said. Kernels' page sizes, slot
mappings and widths of block tables are left alone: [why](../field-notes.md#block-geometry).
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from dcplint.checks.base import Context, Rule
from dcplint.checks.length_evidence import trail
from dcplint.contracts.model import BlockFact
from dcplint.facts.expressions import dotted_name, shorten
from dcplint.facts.positions import position
from dcplint.findings.model import Evidence, Finding, Location, Role, Severity
from dcplint.flow.conditions import Path
from dcplint.flow.dataclasses import constructor_argument
from dcplint.flow.definitions import bindings
from dcplint.flow.functions import CallSite, Function, argument, callee_name, given_once
from dcplint.flow.graph import Node
from dcplint.program.symbols import ClassSymbol
from dcplint.source.location import Tree
from dcplint.source.tree import walk
from dcplint.units.blocks import Counts, Given, Known, bounds_of_range, quotient
from dcplint.units.operations import summands

RULE = Rule(
    code="DCP310",
    name="mixed-block-size",
    summary="flags blocks of one rank's tokens that are taken for blocks of the sequence's",
    severity=Severity.ERROR,
    since="0.1.0",
    probe="none: it takes an engine's scheduler, with a request whose last block is not full",
    follows=False,
)

_BOTH = frozenset({"min", "max", "int"})
_STEPS = 4  # names in terms of names
_SIZES = (Counts.RANK_BLOCK, Counts.SEQUENCE_BLOCK)
_HELD = {
    Counts.RANK_BLOCK: "the tokens that one rank holds of a block",
    Counts.SEQUENCE_BLOCK: "the tokens of the sequence that a block stands for",
}


def check(context: Context) -> Iterator[Finding]:
    """Yield a finding per number that takes the one kind of block for the other."""
    if context.contract.blocks:
        yield from _counted(context)
        yield from _multiplied(context)
        yield from _handed_on(context)


def _can_run(context: Context, function: Function, statement: ast.stmt) -> bool:
    return context.blocks.scenario.can_run(function, statement) and not _is_refused(
        context, function
    )


def _is_refused(context: Context, function: Function, steps: int = 2) -> bool:
    """Whether nothing makes an instance of a function's class with DCP on."""
    scenario, owner = context.blocks.scenario, function.owner
    if owner is None or not steps:
        return False
    made = scenario.lookup.constructor(owner)
    if made is not None and not scenario.returns(made):
        return True
    sites = list(scenario.lookup.constructions(owner))
    return bool(sites) and all(
        not scenario.can_run(site.function, site.statement)
        or not scenario.returns(site.function)
        or (site.function.owner is not owner and _is_refused(context, site.function, steps - 1))
        for site in sites
    )


# Blocks that are counted by one rank's tokens


def _counted(context: Context) -> Iterator[Finding]:
    counted: set[ast.expr] = set()
    for function in context.blocks.cutting():
        held = _holding(function, context.blocks.ids)
        for statement in {s: None for name in held for s in function.mentions.get(name, ())}:
            for node in function.own_nodes[statement]:
                cut = _cut(node)
                if cut is not None and not held.isdisjoint(map(_last, walk(cut.ids))):
                    yield from _miscounts(context, function, statement, cut, counted)


@dataclass(frozen=True, slots=True)
class _Cut:
    """An expression that takes a part of a list, and the numbers that say which."""

    node: ast.expr
    ids: ast.expr
    bounds: list[ast.expr]


def _cut(node: ast.AST) -> _Cut | None:
    if isinstance(node, ast.Subscript):
        return _Cut(node, node.value, [node.slice])
    if isinstance(node, ast.Call) and callee_name(node) == "islice" and node.args:
        return _Cut(node, node.args[0], node.args[1:3])
    return None


@dataclass(frozen=True, slots=True)
class _Count:
    """A quotient of the sequence's tokens by those that one rank holds of a block."""

    function: Function
    node: ast.expr
    divisor: ast.expr
    tokens: Known
    size: Known


def _miscounts(
    context: Context, function: Function, statement: ast.stmt, cut: _Cut, counted: set[ast.expr]
) -> Iterator[Finding]:
    """The findings on ids of blocks that are indexed or cut by such quotients, each once."""
    for at in function.graph.at(statement)[:1]:
        places = [
            p for bound in cut.bounds for p in _quotients(context, (function, at, bound), _STEPS)
        ]
        for place in dict.fromkeys(places):
            count = _count(context, place) if place[2] not in counted else None
            held = context.blocks.known(function, at, cut.ids) if count is not None else None
            if count is None or held is None or held.counts is not Counts.BLOCK_IDS:
                continue
            counted.add(place[2])
            if _can_run(context, function, statement):
                yield _miscounted(context, function, cut, count)


def _count(context: Context, place: Given) -> _Count | None:
    function, at, node = place
    divided = quotient(node)
    if divided is None or not context.blocks.may_be_size(function, divided[1]):
        return None
    size = context.blocks.known(function, at, divided[1])
    if size is None or size.counts is not Counts.RANK_BLOCK:
        return None
    if size.fact.whole and _is_asked(context, place, divided[1]):
        return None
    parts = [p for p in summands(divided[0]) if not isinstance(p, ast.Constant)]
    found = [context.blocks.known(function, at, part) for part in parts]
    tokens = [k for k in found if k is not None and k.counts is Counts.SEQUENCE]
    # What rounds up adds the size.
    rest = [k for k in found if k is None or k.counts is not Counts.SEQUENCE]
    if not tokens or not all(k is not None and k.counts is size.counts for k in rest):
        return None
    return _Count(function, node, divided[1], tokens[0], size)


def _is_asked(context: Context, place: Given, size: ast.expr) -> bool:
    """Whether a test around a division asks for the kind of the group whose size it divides by."""
    function, at, _ = place
    statement = at.statement if at is not None else None
    spoken = {n.id for n in walk(size) if isinstance(n, ast.Name)}
    spoken |= {
        n.id
        for name in spoken
        for value, _, _ in context.blocks.definitions(function, at, name)
        if value is not None
        for n in walk(value)
        if isinstance(n, ast.Name)
    }
    while isinstance(statement, ast.stmt) and statement in function.homes:
        statement = function.homes[statement].parent
        tests = [getattr(statement, "test", None), getattr(statement, "subject", None)]
        for test in filter(None, tests):
            named = [n.id for n in walk(test) if isinstance(n, ast.Name)]
            given = [value for name in named if (value := given_once(function, name)) is not None]
            asked = (n for part in (test, *given) for n in walk(part))
            if any(isinstance(n, ast.Name) and n.id in spoken for n in asked):
                return True
    return False


def _holding(function: Function, ids: frozenset[str]) -> set[str]:
    """The names by which a function may get ids of blocks."""
    held = set(ids)
    waiting = list(held)
    for name in waiting:  # grows as it is read
        for statement in function.mentions.get(name, ()):
            bound = [b for at in function.graph.at(statement) for b, _ in bindings(at)]
            loops = [statement] if isinstance(statement, (ast.For, ast.AsyncFor)) else []
            for node in function.own_nodes[statement]:
                loops += getattr(node, "generators", ())
            for loop in loops:
                bound += [n.id for n in walk(loop.target) if isinstance(n, ast.Name)]
            waiting += [b for b in dict.fromkeys(bound) if b not in held]
            held.update(bound)
    return held


def _last(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _quotients(context: Context, given: Given, steps: int) -> Iterator[Given]:
    """The quotients that a bound or an index is, with what is added or taken off."""
    function, at, node = given
    blocks = context.blocks
    parts: list[tuple[Node | None, ast.expr | None]] = []
    if quotient(node) is not None:
        yield given
    elif isinstance(node, ast.Slice):
        parts = [(at, node.lower), (at, node.upper)]
    elif isinstance(node, ast.UnaryOp):
        parts = [(at, node.operand)]
    elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        parts = [(at, node.left), (at, node.right)]
    elif isinstance(node, ast.Call) and callee_name(node) in _BOTH:
        parts = [(at, part) for part in node.args]
    elif isinstance(node, ast.Name) and steps:
        for element in blocks.elements(function, at, node.id):
            if element.source is not None:
                parts += [(element.at, bound) for bound in bounds_of_range(element.source)]
        for value, before, path in blocks.definitions(function, at, node.id):
            if value is not None and _is_whole_part(value, path):
                parts.append((before, value))
    elif isinstance(node, (ast.Attribute, ast.Call)) and steps:
        for where, value in blocks.scenario.meanings(function, node):
            yield from _quotients(context, (where, None, value), steps - 1)
    for place, part in parts:
        if part is not None:
            left = steps - isinstance(node, ast.Name)
            yield from _quotients(context, (function, place, part), left)


def _is_whole_part(value: ast.expr, path: Path) -> bool:
    """Whether an assignment gives a value, or of `divmod()` the quotient."""
    divides = isinstance(value, ast.Call) and callee_name(value) == "divmod"
    return path == ((0,) if divides else ())


def _miscounted(context: Context, function: Function, cut: _Cut, count: _Count) -> Finding:
    return RULE.finding(
        f"`{count.function.qualname}` counts blocks by `{shorten(count.node)}`: "
        f"`{shorten(count.divisor)}` is how many tokens one rank holds of a block, and under DCP "
        f"each of `{shorten(cut.ids)}` stands for as many times that of the sequence's tokens as "
        "there are ranks",
        context.program.location(count.function.module, position(count.node)),
        symbol=count.function.qualname,
        evidence=(
            *trail(context, count.size),
            *trail(context, count.tokens),
            Evidence(
                f"{function.qualname}: `{shorten(cut.node)}` takes as many",
                context.program.location(function.module, position(cut.node)),
                Role.CONTEXT,
            ),
        ),
    )


# Sizes that are multiplied twice, or whatever they are of


def _multiplied(context: Context) -> Iterator[Finding]:
    for function in context.blocks.multiplying():
        for statement, nodes in function.own_nodes.items():
            if isinstance(statement, ast.AugAssign):
                nodes = (*nodes, context.blocks.result(statement))
            for node in nodes:
                if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
                    sides = ((node.left, node.right), (node.right, node.left))
                    for side, other in sides:
                        if context.blocks.is_size(function, other):
                            yield from _product(context, function, statement, node, side)
                            break


def _product(
    context: Context, function: Function, statement: ast.stmt, node: ast.BinOp, side: ast.expr
) -> Iterator[Finding]:
    for at in function.graph.at(statement):
        if isinstance(side, ast.Attribute) and dotted_name(side) in dict(bindings(at)):
            return  # what is known of an attribute is what it is set to here
        known = context.blocks.known(function, at, side)
        if known is None or not _can_run(context, function, statement):
            continue
        if known.counts is Counts.SEQUENCE_BLOCK:
            yield RULE.finding(
                f"`{shorten(node)}` multiplies the size of a block by the DCP size that has been "
                f"multiplied before: `{shorten(side)}` is how many tokens of the sequence it "
                "stands for",
                context.program.location(function.module, position(node)),
                symbol=function.qualname,
                evidence=trail(context, known),
            )
        elif known.counts is Counts.RANK_BLOCK and known.fact.whole:
            if _is_any_group(context, function, at, side):
                yield _whole(context, function, node, known)
        return


def _is_any_group(context: Context, function: Function, at: Node, size: ast.expr) -> bool:
    """Whether a loop takes a size from all groups of a model in turn, and nothing asks what it is.

    Neither of the group that it is at, nor of the groups as a whole.
    """
    blocks = context.blocks
    for _ in range(_STEPS):
        if not isinstance(size, ast.Name):
            break
        given = list(blocks.definitions(function, at, size.id))
        value, place, path = given[0]
        if len(given) != 1 or value is None or path:
            return False
        size, at = value, place
    if not isinstance(size, ast.Attribute):
        return False
    found = blocks.classes(function, at, size.value)
    facts = [f for symbol in found for f in blocks.facts_of(symbol, size.attr)]
    if not facts or any(symbol.dotted != fact.record for symbol in found for fact in facts):
        return False  # known to be of one kind
    loops: dict[ast.stmt, None] = {}
    spoken: set[str] = set()
    gone_through: set[str | None] = set()
    names = [(n.id, at) for n in walk(size.value) if isinstance(n, ast.Name)]
    for name, place in names:  # grows as it is read
        if name in spoken:
            continue
        elements = list(blocks.elements(function, place, name))
        if any(element.filtered for element in elements):
            return False
        for element in elements:
            gone_through.add(dotted_name(element.iterable))
            if element.at is not None and isinstance(element.at.statement, ast.stmt):
                loops[element.at.statement] = None
                spoken.add(name)
        for value, before, _ in blocks.definitions(function, place, name):
            if value is not None and not elements:
                spoken.add(name)
                names += [(n.id, before) for n in walk(value) if isinstance(n, ast.Name)]
    gone_through.discard(None)
    asked = [(part, inside) for test, inside in _tests(function, loops) for part in walk(test)]
    return bool(loops) and not any(
        (inside and isinstance(part, ast.Name) and part.id in spoken)
        or (isinstance(part, ast.expr) and dotted_name(part) in gone_through)
        for part, inside in asked
    )


def _tests(function: Function, loops: Collection[ast.stmt]) -> Iterator[tuple[ast.AST, bool]]:
    """What a function asks, and whether it does in the rounds of some loops.

    Comprehensions are loops of their statements.
    """
    for statement, nodes in function.own_nodes.items():
        around: ast.stmt | None = statement
        while around is not None and around not in loops:
            around = function.homes[around].parent
        for test in _tests_of(statement, nodes):
            yield test, around is not None


def _tests_of(statement: ast.stmt, nodes: Collection[ast.AST]) -> Iterator[ast.AST]:
    if isinstance(statement, (ast.If, ast.While, ast.Assert)):
        yield statement.test
    elif isinstance(statement, ast.Match):
        yield statement.subject
    for node in nodes:
        if isinstance(node, ast.IfExp):
            yield node.test
        elif isinstance(node, ast.BoolOp):
            yield node


def _whole(context: Context, function: Function, node: ast.BinOp, known: Known) -> Finding:
    fact = known.fact
    kinds = ", ".join(f"`{record.rpartition('.')[2]}`" for record in fact.whole)
    place = Location(fact.source.pack, fact.source.line, tree=Tree.PACK)
    return RULE.finding(
        f"`{shorten(node)}` multiplies the block size of every group by the DCP size, and asks "
        f"none whether ranks share its cache: they have the state of {kinds} whole",
        context.program.location(function.module, position(node)),
        symbol=function.qualname,
        evidence=(
            *trail(context, known),
            Evidence(f"a block of {kinds} stands for what it holds ({fact.source.text})", place),
        ),
    )


# Sizes of one kind that are given to what wants the other


def _handed_on(context: Context) -> Iterator[Finding]:
    for fact in context.contract.blocks:
        if Counts.RANK_BLOCK.value != fact.counts and not (
            fact.argument and fact.counts == Counts.SEQUENCE_BLOCK.value
        ):
            continue
        for site in _takers(context, fact):
            if site.function.module.tree is Tree.PROJECT:
                yield from _given(context, site, fact)


def _given(context: Context, site: CallSite, fact: BlockFact) -> Iterator[Finding]:
    given = {keyword.arg for keyword in site.call.keywords}
    passed = _passed(context, site, fact)
    if passed is None or None in given or given.intersection(fact.unless):
        return
    for at in site.nodes:
        known = context.blocks.known(site.function, at, passed)
        if known is not None and known.counts in _SIZES and known.counts.value != fact.counts:
            if _can_run(context, site.function, site.statement):
                yield _misplaced(context, site, passed, known, fact)
        return


def _takers(context: Context, fact: BlockFact) -> Iterator[CallSite]:
    """The calls that must give what a fact is about: of a method, or of a record's class."""
    blocks, universe = context.blocks, context.blocks.universe
    if fact.argument:
        for site in universe.calls_of(fact.method):
            at = next(iter(site.nodes), None)
            if blocks.is_call_of(site.function, at, site.call, fact):
                yield site
        return
    records = [r.rpartition(".")[2] for r in (fact.record, *fact.kinds) if r not in fact.whole]
    for name in sorted(universe.program.spellings(frozenset(records))):
        for site in universe.calls_of(name):
            built = blocks.scenario.lookup.built(site.function, site.call)
            if built is not None and fact in blocks.facts_of(built, fact.name):
                yield site


def _passed(context: Context, site: CallSite, fact: BlockFact) -> ast.expr | None:
    universe, call = context.blocks.universe, site.call
    if not fact.method:
        built = context.blocks.scenario.lookup.built(site.function, call)
        return constructor_argument(universe, call, built, fact.name) if built else None
    for keyword in call.keywords:
        if keyword.arg == fact.argument:
            return keyword.value
    record = universe.program.linker.absolute(fact.record)
    if not isinstance(record, ClassSymbol):
        return None
    method = universe.program.method(record, fact.method)
    callee = universe.function(method.owner.module, method.facts) if method else None
    return argument(callee, call, fact.argument) if callee is not None else None


def _misplaced(
    context: Context, site: CallSite, passed: ast.expr, known: Known, fact: BlockFact
) -> Finding:
    function = site.function
    taker = f"`{callee_name(site.call)}({fact.name or fact.argument}=…)`"
    place = Location(fact.source.pack, fact.source.line, tree=Tree.PACK)
    return RULE.finding(
        f"`{function.qualname}` passes `{shorten(passed)}` for {taker}, which wants "
        f"{_HELD[Counts(fact.counts)]}: it is {_HELD[known.counts]}",
        context.program.location(function.module, position(passed)),
        symbol=function.qualname,
        evidence=(
            *trail(context, known),
            Evidence(f"{taker} wants {_HELD[Counts(fact.counts)]} ({fact.source.text})", place),
        ),
    )
