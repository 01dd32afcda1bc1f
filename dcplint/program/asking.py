"""Which code reaches a gate: overrides that still ask, and those that no longer do."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from dcplint.contracts.model import Bypass, Gate, Site
from dcplint.facts.expressions import dotted_name
from dcplint.facts.extract import Place, local_bindings
from dcplint.facts.model import Binding, FunctionFacts, Source
from dcplint.program.dcp_use import raises, refuses
from dcplint.program.index import REPLACING
from dcplint.program.program import Method, Program
from dcplint.program.related import is_test
from dcplint.program.symbols import ClassSymbol, FunctionSymbol, Module, Symbol
from dcplint.program.telling import tells
from dcplint.source.location import Tree
from dcplint.source.tree import Definition, walk

_DEPTH = 4
_TYPES = frozenset({"type", "Type", "typing.Type"})


@dataclass(frozen=True, slots=True)
class Override:
    """A class that replaces a method by which the engine reaches a gate.

    silent: the returns that nothing asked before; all of them where `asks` is false. stands_in:
    the class is built on what the engine's own is built on, and not on that.
    """

    gate: Gate
    hook: Site
    symbol: ClassSymbol
    method: FunctionFacts
    asks: bool
    silent: tuple[ast.Return, ...]
    stands_in: bool = False


def overrides(program: Program) -> Iterator[Override]:
    """The overrides, in the checked tree, of every method that a gate counts on.

    One that raises under DCP lets nothing through: there is nothing to ask of.
    """
    told: set[tuple[ClassSymbol, str]] = set()
    for gate in program.contract.gates:
        for hook in gate.hooks:
            owner, _, name = hook.function.rpartition(".")
            if program.contract.effective not in hook.releases:
                continue
            for symbol in _heirs(program, owner):
                method = next((m for m in symbol.facts.methods if m.name == name), None)
                if method is None or (symbol, hook.function) in told:
                    continue
                told.add((symbol, hook.function))
                node = program.function(symbol.module, method)
                if node is None or raises(program, Method(symbol, method), gate.argument):
                    continue
                if _is_refused_beside(program, symbol):
                    continue
                asking = _Asking(program, symbol, gate, name)
                yield Override(
                    gate,
                    hook,
                    symbol,
                    method,
                    asking.asks(symbol.module, node, _DEPTH),
                    tuple(asking.silent_returns(node)),
                )
    yield from _stand_ins(program)


def _is_refused_beside(program: Program, symbol: ClassSymbol) -> bool:
    """Whether another method of a class of the checked tree refuses DCP, or of one above it."""
    return any(
        refuses(program, Method(entry, facts))
        for entry in program.mro(symbol).classes
        if entry.module.tree is Tree.PROJECT
        for facts in entry.facts.methods
    )


def _stand_ins(program: Program) -> Iterator[Override]:
    """Classes that do in the engine's place what a gate counts on, and ask it nowhere."""
    built_on = {c.name: frozenset(c.bases) for c in program.contract.classes}
    hooks = [(gate, hook) for gate in program.contract.gates for hook in gate.hooks]
    owners = {hook.function.rpartition(".")[0] for _, hook in hooks}
    told: set[ClassSymbol] = set()
    for gate, hook in hooks:
        owner, _, name = hook.function.rpartition(".")
        bases = built_on.get(owner, frozenset())
        if not bases or program.contract.effective not in hook.releases:
            continue
        for symbol in (symbol for module in program.checked for symbol in module.classes):
            method = next((m for m in symbol.facts.methods if m.name == name), None)
            if method is None or symbol in told:
                continue
            ancestry = _ancestry(program, symbol)
            if ancestry & owners or not ancestry & bases:
                continue
            told.add(symbol)
            if raises(program, Method(symbol, method), gate.argument):
                continue
            asking = _Asking(program, symbol, gate, name)
            bodies = (program.function(symbol.module, m) for m in symbol.facts.methods)
            if not any(asking.asks(symbol.module, body, _DEPTH) for body in bodies if body):
                yield Override(gate, hook, symbol, method, False, (), stands_in=True)


def _ancestry(program: Program, symbol: ClassSymbol) -> frozenset[str]:
    """The dotted names of a class and of all that it derives from, whether they can be read or not.

    What cannot be read is called by what it is imported as.
    """
    found: set[str] = set()
    for entry in program.mro(symbol).classes:
        imported = {
            binding.name: binding.target
            for binding in entry.module.facts.bindings
            if binding.source is Source.IMPORT
        }
        found.add(entry.dotted)
        for base in entry.facts.bases:
            root, _, rest = (base.text or "").partition(".")
            if root in imported:
                found.add(f"{imported[root]}.{rest}" if rest else imported[root])
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class Untold:
    """A call of a gate that leaves out the argument which makes it ask. symbol: the function."""

    gate: Gate
    module: Module
    symbol: str
    backend: ClassSymbol
    call: ast.Call


def untold(program: Program) -> Iterator[Untold]:
    """The calls of gates, on classes of the gate's role, that cannot ask of DCP."""
    for gate in program.contract.gates:
        for module, facts, node, call in _askings(program, gate):
            if _hands_on(node, call):
                backend = _enclosing(module, facts) if _could_tell(node, gate) else None
            else:
                backend = _asked(program, module, facts, node, call)
            if backend is not None and gate.role in program.roles(backend):
                if not tells(node, call, gate.argument):
                    yield Untold(gate, module, facts.qualname, backend, call)


def _asked(
    program: Program, module: Module, facts: FunctionFacts, node: Definition, call: ast.Call
) -> ClassSymbol | None:
    """The class that a gate is called on: by its name, or a variable noted as `type[C]`."""
    owner = (dotted_name(call.func) or "").rpartition(".")[0]
    note = _notes(node).get(owner)
    if owner.startswith("self."):
        note = _attribute_note(program, _enclosing(module, facts), owner)
    owner = _class_noted(note) or owner
    named = program.linker.name(module, owner, _scopes(node, module))
    return named if isinstance(named, ClassSymbol) else None


def _class_noted(note: ast.expr | None) -> str:
    """`C`, where a note says `type[C]`, in quotes or without, or nothing at all."""
    if isinstance(note, ast.Constant) and isinstance(note.value, str):
        return _class_noted(_parsed(note.value))
    if isinstance(note, ast.BinOp) and isinstance(note.op, ast.BitOr):
        found = {_class_noted(side) for side in (note.left, note.right)} - {""}
        return found.pop() if len(found) == 1 else ""
    if not isinstance(note, ast.Subscript):
        return ""
    outer = dotted_name(note.value) or ""
    if outer.rpartition(".")[2] == "Optional":
        return _class_noted(note.slice)
    inner: ast.expr | None = note.slice
    if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
        inner = _parsed(inner.value)
    return (dotted_name(inner) or "") if outer in _TYPES and inner is not None else ""


def _attribute_note(program: Program, symbol: ClassSymbol | None, dotted: str) -> ast.expr | None:
    """The annotation of an attribute, where the class gives it one or sets it to a parameter."""
    for facts in symbol.facts.methods if symbol is not None else ():
        method = program.function(symbol.module, facts) if symbol is not None else None
        for inner in walk(method) if method is not None else ():
            if isinstance(inner, ast.AnnAssign) and dotted_name(inner.target) == dotted:
                return inner.annotation
            if isinstance(inner, ast.Assign) and isinstance(inner.value, ast.Name):
                if method is not None and dotted in map(dotted_name, inner.targets):
                    return _notes(method).get(inner.value.id)
    return None


def _notes(node: Definition) -> dict[str, ast.expr | None]:
    """The annotations of a function's parameters and variables."""
    spec = node.args
    found = {a.arg: a.annotation for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)}
    for inner in walk(node):
        if isinstance(inner, ast.AnnAssign) and isinstance(inner.target, ast.Name):
            found[inner.target.id] = inner.annotation
    return found


def _parsed(annotation: str) -> ast.expr | None:
    try:
        return ast.parse(annotation, mode="eval").body
    except SyntaxError:
        return None


def _hands_on(node: Definition, call: ast.Call) -> bool:
    """Whether a method asks its parent's gate: `super().m(…)` in `m`."""
    return (
        isinstance(call.func, ast.Attribute)
        and call.func.attr == node.name
        and isinstance(call.func.value, ast.Call)
        and dotted_name(call.func.value.func) == "super"
    )


def _could_tell(node: Definition, gate: Gate) -> bool:
    """Whether a method is told the gate's argument, and makes no use of it itself."""
    spec = node.args
    names = {a.arg for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)}
    read = {inner.id for inner in walk(node) if isinstance(inner, ast.Name)}
    if spec.kwarg is not None and gate.argument not in names:
        return spec.kwarg.arg not in read
    return gate.argument in names and gate.argument not in read


def _enclosing(module: Module, facts: FunctionFacts) -> ClassSymbol | None:
    """The class whose method a function is."""
    owner = facts.qualname.rpartition(".")[0]
    return next((s for s in module.classes if s.facts.qualname == owner), None)


@dataclass(frozen=True, slots=True)
class Disarmed:
    """A record that is built without what makes a gate ask, where a gate is told its fields.

    symbol: the function that builds it. told: the calls of the gate.
    """

    gate: Gate
    module: Module
    symbol: str
    record: ClassSymbol
    call: ast.Call
    told: tuple[tuple[Module, ast.Call], ...]


def disarmed(program: Program) -> Iterator[Disarmed]:
    """The constructions, in the checked tree, of its own records that leave out a gate's argument.

    Only where the record's own value for it is False or None, and nobody replaces that later.
    """
    for gate in program.contract.gates:
        found: dict[ClassSymbol, list[tuple[Module, ast.Call]]] = {}
        for module, _, node, call in _askings(program, gate):
            for record in _told(program, module, node, call):
                if record.module.tree is Tree.PROJECT and _is_off(record, gate.argument):
                    found.setdefault(record, []).append((module, call))
        for record, told in found.items():
            if _is_set_later(program, record, gate):
                continue
            for module, symbol, call in _constructions(program, record):
                if not _gives(record, call, gate.argument):
                    yield Disarmed(gate, module, symbol, record, call, tuple(told))


def _told(
    program: Program, module: Module, node: Definition, call: ast.Call
) -> Iterator[ClassSymbol]:
    """The classes of the parameters whose fields a call passes on: `**x._asdict()`."""
    noted = _notes(node)
    for keyword in call.keywords:
        made = keyword.value
        if keyword.arg is not None or not isinstance(made, ast.Call):
            continue
        name = (dotted_name(made.func) or "").rpartition(".")[2]
        given = made.args[0] if name == "asdict" and made.args else None
        if name == "_asdict" and isinstance(made.func, ast.Attribute):
            given = made.func.value
        annotation = noted.get(given.id) if isinstance(given, ast.Name) else None
        if annotation is None:
            continue
        dotted = dotted_name(annotation)
        if isinstance(annotation, ast.Constant):
            dotted = str(annotation.value)
        found = program.linker.name(module, dotted or "", _scopes(node, module))
        if isinstance(found, ClassSymbol):
            yield found


def _is_off(record: ClassSymbol, argument: str | None) -> bool:
    """Whether a record has a field which its class leaves False or None."""
    return any(
        fact.name == argument and fact.value.kind == "literal" and not fact.value.value
        for fact in record.facts.attributes
    )


def _is_set_later(program: Program, record: ClassSymbol, gate: Gate) -> bool:
    """Whether a record is copied with the gate's argument somewhere."""
    signs = frozenset({"replace("})
    return any(
        last_name(call) in ("replace", "_replace")
        and any(k.arg == gate.argument for k in call.keywords)
        for module in _at_hand(program, record)
        for _, node in containing(program, module, signs, also=gate.argument or "")
        for call in _calls(node)
    )


def _constructions(program: Program, record: ClassSymbol) -> Iterator[tuple[Module, str, ast.Call]]:
    """The calls that build a record: tests are no part of the engine."""
    signs = frozenset(f"{n}(" for n in program.spellings(frozenset({record.facts.name})))
    for module in _at_hand(program, record):
        if is_test(module.facts.path):
            continue
        for facts, node in containing(program, module, signs):
            for call in _calls(node):
                dotted = dotted_name(call.func)
                if dotted and program.linker.name(module, dotted, _scopes(node, module)) is record:
                    yield module, facts.qualname, call


def _at_hand(program: Program, record: ClassSymbol) -> tuple[Module, ...]:
    """The modules that are looked at anyway, and the one that a record stands in."""
    return tuple(dict.fromkeys((*program.checked, record.module)))


def _gives(record: ClassSymbol, call: ast.Call, argument: str | None) -> bool:
    """Whether a construction passes a field, or may: by name, by position, or with others."""
    named = {keyword.arg for keyword in call.keywords}
    if None in named or argument in named or any(isinstance(a, ast.Starred) for a in call.args):
        return True
    fields = [fact.name for fact in record.facts.attributes if fact.annotation and not fact.scope]
    return argument in fields[: len(call.args)]


def _askings(
    program: Program, gate: Gate
) -> Iterator[tuple[Module, FunctionFacts, Definition, ast.Call]]:
    """The calls in the checked tree by the name of a gate that is told what to ask of."""
    name = gate.function.rpartition(".")[2]
    for module in program.checked if gate.argument else ():
        for facts, node in containing(program, module, frozenset({f".{name}("})):
            for call in _calls(node):
                if isinstance(call.func, ast.Attribute) and call.func.attr == name:
                    yield module, facts, node, call


def containing(
    program: Program, module: Module, signs: frozenset[str], also: str = ""
) -> Iterator[tuple[FunctionFacts, Definition]]:
    """The functions of a module with one of `signs`, and with `also`, in their text."""
    text = program.modules.text(module.tree, module.facts.path)
    if not any(sign in text.text for sign in signs):
        return
    for facts in _functions(module):
        own = text.between(*facts.lines)
        if any(sign in own for sign in signs) and also in own:
            node = program.function(module, facts)
            if node is not None:
                yield facts, node


@dataclass(frozen=True, slots=True)
class Replaced:
    """A statement that gives an object another class than gates have judged."""

    module: Module
    symbol: str
    by: ClassSymbol
    node: ast.Assign


def replaced(program: Program, role: str) -> Iterator[Replaced]:
    """The statements in the checked tree that set `__class__` to a class of a role."""
    sign = REPLACING.decode()
    for module in program.checked:
        text = program.modules.text(module.tree, module.facts.path)
        if sign not in text.text:
            continue
        for facts in _functions(module):
            if sign not in text.between(*facts.lines):
                continue
            node = program.function(module, facts)
            for inner in walk(node) if node is not None else ():
                if isinstance(inner, ast.Assign) and any(map(_is_class_of, inner.targets)):
                    dotted = dotted_name(inner.value)
                    found = program.linker.name(module, dotted or "", _scopes(node, module))
                    if isinstance(found, ClassSymbol) and role in program.roles(found):
                        owner = _enclosing(module, facts)
                        if owner is not None and raises(program, Method(owner, facts)):
                            continue
                        yield Replaced(module, facts.qualname, found, inner)


def _is_class_of(target: ast.expr) -> bool:
    return isinstance(target, ast.Attribute) and target.attr == "__class__"


@dataclass(frozen=True, slots=True)
class Handed:
    """A call that hands over a class which a gate would have judged. symbol: the function."""

    gate: Gate
    way: Bypass
    module: Module
    symbol: str
    handed: ClassSymbol
    call: ast.Call


def handed(program: Program) -> Iterator[Handed]:
    """The calls in the checked tree that leave a gate out by what they pass."""
    for gate in program.contract.gates:
        for way in gate.bypasses:
            if program.contract.effective in way.releases:
                for module in program.checked:
                    yield from _handed_in(program, module, gate, way)


def _handed_in(program: Program, module: Module, gate: Gate, way: Bypass) -> Iterator[Handed]:
    text = program.modules.text(module.tree, module.facts.path)
    owned = [(facts, None) for facts in module.facts.functions]
    for facts, owner in (*owned, *((m, c) for c in module.classes for m in c.facts.methods)):
        if f"{way.argument}=" not in text.between(*facts.lines):
            continue
        node = program.function(module, facts)
        scopes = _scopes(node, module)
        for call in _calls(node) if node is not None else ():
            for keyword in call.keywords:
                passed = dotted_name(keyword.value)
                if keyword.arg != way.argument or passed is None:
                    continue
                found = program.linker.name(module, passed, scopes)
                if isinstance(found, ClassSymbol) and gate.role in program.roles(found):
                    if owner and raises(program, Method(owner, facts), gate.argument):
                        continue
                    if node and _is_asked_before(program, module, node, call, gate, found):
                        continue
                    if _constructs(program, module, owner, call, scopes, way):
                        yield Handed(gate, way, module, facts.qualname, found, call)


def _is_asked_before(
    program: Program,
    module: Module,
    node: Definition,
    call: ast.Call,
    gate: Gate,
    handed: ClassSymbol,
) -> bool:
    """Whether a function has asked the gate of a class before it hands that on in `call`."""
    scopes = _scopes(node, module)
    return any(
        last_name(asked) == gate.function.rpartition(".")[2]
        and (asked.lineno, asked.col_offset) < (call.lineno, call.col_offset)
        and isinstance(asked.func, ast.Attribute)
        and program.linker.name(module, dotted_name(asked.func.value) or "", scopes) is handed
        and tells(node, asked, gate.argument)
        for asked in _calls(node)
    )


def _constructs(
    program: Program,
    module: Module,
    owner: ClassSymbol | None,
    call: ast.Call,
    scopes: tuple[tuple[Binding, ...], ...],
    way: Bypass,
) -> bool:
    """Whether a call makes an instance of the class whose constructor takes the argument."""
    wanted = way.function.rpartition(".")[0]
    callee = call.func
    made: Symbol | None = None
    if isinstance(callee, ast.Attribute) and callee.attr == "__init__":
        if isinstance(callee.value, ast.Call) and dotted_name(callee.value.func) == "super":
            made = owner
    else:
        dotted = dotted_name(callee)
        made = program.linker.name(module, dotted, scopes) if dotted is not None else None
    if not isinstance(made, ClassSymbol):
        return getattr(made, "dotted", "") == wanted
    return wanted in _ancestry(program, made)


def _functions(module: Module) -> Iterator[FunctionFacts]:
    yield from module.facts.functions
    for symbol in module.classes:
        yield from symbol.facts.methods


def _scopes(
    node: ast.FunctionDef | ast.AsyncFunctionDef | None, module: Module
) -> tuple[tuple[Binding, ...], ...]:
    """What the function itself binds: it may import the class where it asks it."""
    facts = module.facts
    place = Place(facts.path, facts.name, facts.is_package)
    return (local_bindings(node, place),) if node is not None else ()


def _heirs(program: Program, owner: str) -> Iterator[ClassSymbol]:
    for module in program.checked:
        for symbol in module.classes:
            entries = program.mro(symbol).classes
            if any(entry.dotted == owner for entry in entries[1:]):
                yield symbol


@dataclass(frozen=True, slots=True)
class _Asking:
    """Looks for calls that reach `gate`, from a method of `symbol` that overrides `hook`."""

    program: Program
    symbol: ClassSymbol
    gate: Gate
    hook: str

    def asks(self, module: Module, node: ast.AST, depth: int) -> bool:
        """Whether a function calls the gate, the method it overrides, or something that does.

        What reads the promise itself does as the gate does.
        """
        return any(
            self._reaches(module, inner, depth)
            if isinstance(inner, ast.Call)
            else isinstance(inner, ast.Attribute)
            and (inner.attr == self.gate.capability or self._is_inherited(module, inner))
            for inner in walk(node)
        )

    def _is_inherited(self, module: Module, reference: ast.Attribute) -> bool:
        """Whether it is what the method overrides: of `super()`, or of a base class by its name.

        It need not be called on the spot: who takes it up, or hands it on, means to call it.
        """
        if reference.attr != self.hook:
            return False
        owner = reference.value
        if isinstance(owner, ast.Call):
            return dotted_name(owner.func) == "super"
        dotted = dotted_name(owner)
        base = self.program.linker.name(module, dotted) if dotted is not None else None
        if isinstance(base, ClassSymbol):
            return base in self.program.mro(self.symbol).classes[1:]
        return getattr(base, "dotted", "") in _ancestry(self.program, self.symbol)

    def _reaches(self, module: Module, call: ast.Call, depth: int) -> bool:
        name = last_name(call)
        if name == self.gate.function.rpartition(".")[2]:
            return True
        if depth == 0 or (name == self.hook and isinstance(call.func, ast.Attribute)):
            return False
        target = self._target(module, call)
        if target is None:
            return False
        node = self.program.function(*target)
        return node is not None and self.asks(target[0], node, depth - 1)

    def _target(self, module: Module, call: ast.Call) -> tuple[Module, FunctionFacts] | None:
        callee = call.func
        dotted = dotted_name(callee)
        if dotted is None:
            return None
        head, _, name = dotted.rpartition(".")
        if head in ("self", "cls", self.symbol.facts.name):
            method = self.program.method(self.symbol, name)
            return (method.owner.module, method.facts) if method else None
        found = self.program.linker.name(module, dotted)
        return (found.module, found.facts) if isinstance(found, FunctionSymbol) else None

    def silent_returns(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.Return]:
        """Returns of a value before which, on their way, nothing has asked."""
        yield from self._silent(node.body, False)

    def _silent(self, block: list[ast.stmt], asked: bool) -> Iterator[ast.Return]:
        for statement in block:
            if isinstance(statement, ast.Return):
                if not asked and statement.value is not None and not self._asks_here(statement):
                    yield statement
                return
            for inner in _blocks(statement):
                yield from self._silent(inner, asked or self._asks_in_header(statement))
            asked = asked or self._asks_before_the_next(statement)

    def _asks_before_the_next(self, statement: ast.stmt) -> bool:
        """Whether control that comes past a statement may have asked in it."""
        if not isinstance(statement, ast.If):
            return self._asks_here(statement)
        falling = [b for b in (statement.body, statement.orelse) if _falls_through(b)]
        return self._asks_in_header(statement) or any(
            self._asks_before_the_next(inner) for block in falling for inner in block
        )

    def _asks_here(self, statement: ast.stmt) -> bool:
        return self.asks(self.symbol.module, statement, _DEPTH)

    def _asks_in_header(self, statement: ast.stmt) -> bool:
        headers = (c for c in ast.iter_child_nodes(statement) if isinstance(c, ast.expr))
        return any(self.asks(self.symbol.module, header, _DEPTH) for header in headers)


def _calls(node: ast.AST) -> Iterator[ast.Call]:
    return (inner for inner in walk(node) if isinstance(inner, ast.Call))


def last_name(call: ast.Call) -> str:
    """The last name of what is called."""
    callee = call.func
    if isinstance(callee, ast.Attribute):
        return callee.attr
    return callee.id if isinstance(callee, ast.Name) else ""


def _falls_through(block: list[ast.stmt]) -> bool:
    """Whether control can come past the end of a block."""
    last = block[-1] if block else None
    if isinstance(last, ast.If):
        return _falls_through(last.body) or _falls_through(last.orelse)
    return not isinstance(last, (ast.Return, ast.Raise))


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(statement, name, None)
        if isinstance(block, list):
            yield block
    for handler in getattr(statement, "handlers", []):
        yield handler.body
    for case in getattr(statement, "cases", []):
        yield case.body
