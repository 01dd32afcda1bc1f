"""What classes an expression may be an instance of, where annotations or constructions say so."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeGuard

from dcplint.facts.expressions import dotted_name
from dcplint.flow.conditions import spelled
from dcplint.flow.functions import Function
from dcplint.flow.listing import Classes, Listing, Setting
from dcplint.flow.values import element_of, unpacked
from dcplint.program.link import Scopes
from dcplint.program.symbols import ClassSymbol, Module, Symbol, Variable

_DEPTH = 4


def classes_of(
    listing: Listing, function: Function, node: ast.expr, depth: int = _DEPTH
) -> Classes:
    """The classes `node` may be an instance of in `function`; empty where it cannot be told."""
    if depth < _DEPTH:
        return _classes_of(listing, function, node, depth)
    key = (function, node)
    if key not in listing.instances:
        listing.instances[key] = _classes_of(listing, function, node, depth)
    return listing.instances[key]


def _classes_of(listing: Listing, function: Function, node: ast.expr, depth: int) -> Classes:
    if depth == 0:
        return ()
    found: dict[ClassSymbol, None] = {}
    for candidates in _candidates(listing, function, node, depth):
        if not candidates:
            return ()
        found.update(dict.fromkeys(candidates))
    return tuple(found)


def narrowed(listing: Listing, function: Function, statement: ast.stmt, node: ast.expr) -> Classes:
    """The classes to which an `isinstance` test that holds at `statement` narrows `node`."""
    current: ast.stmt | None = statement if statement in function.homes else None
    while current is not None:
        home = function.homes[current]
        tests = [n.test for n in home.block[: home.index] if isinstance(n, ast.Assert)]
        if isinstance(home.parent, ast.If) and home.block is home.parent.body:
            tests.append(home.parent.test)
        for test in tests:
            for part in test.values if _is_and(test) else [test]:
                if _tests_instance(part, node):
                    return annotated(listing, function, as_union(part.args[1]))
        current = home.parent
    return ()


def _is_and(test: ast.expr) -> TypeGuard[ast.BoolOp]:
    return isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And)


def _tests_instance(test: ast.expr, node: ast.expr) -> TypeGuard[ast.Call]:
    return (
        isinstance(test, ast.Call)
        and dotted_name(test.func) == "isinstance"
        and len(test.args) == 2
        and spelled(test.args[0]) == spelled(node)
    )


def as_union(classes: ast.expr) -> ast.expr:
    """`(A, B)`, as `isinstance` takes it, written as `A | B`."""
    if not isinstance(classes, ast.Tuple) or not classes.elts:
        return classes
    union = classes.elts[0]
    for other in classes.elts[1:]:
        union = ast.BinOp(union, ast.BitOr(), other)
    return union


def _candidates(
    listing: Listing, function: Function, node: ast.expr, depth: int
) -> Iterator[Classes]:
    if isinstance(node, ast.Call):
        yield meant(listing, function, node.func, depth) or _handed(listing, function, node.func)
    elif isinstance(node, ast.Name):
        yield from _of_name(listing, function, node.id, depth)
    elif isinstance(node, ast.Attribute):
        for owner in classes_of(listing, function, node.value, depth - 1):
            yield from _of_attribute(listing, owner, node.attr, depth)
    elif isinstance(node, ast.IfExp):
        for branch in (node.body, node.orelse):
            if not _is_none(branch):
                yield classes_of(listing, function, branch, depth - 1)


def _is_none(node: ast.expr | None) -> bool:
    """A value that says nothing of the class: none at all, or None."""
    return node is None or (isinstance(node, ast.Constant) and node.value is None)


def _of_name(listing: Listing, function: Function, name: str, depth: int) -> Iterator[Classes]:
    if name == "self" and function.is_method and function.owner is not None:
        yield (function.owner,)
        return
    for place, parameter in enumerate(_parameters(function)):
        if parameter.arg == name:
            yield _of_parameter(listing, function, place, parameter)
            return
    for node in function.mentions.get(name, ()):
        if isinstance(node, ast.AnnAssign) and dotted_name(node.target) == name:
            yield annotated(listing, function, node.annotation)
        elif isinstance(node, ast.Assign):
            is_target = any(dotted_name(target) == name for target in node.targets)
            if is_target and not _is_none(node.value):
                yield classes_of(listing, function, node.value, depth - 1)
    if function.outer is not None and name not in function.local_names:
        yield from _of_name(listing, function.outer, name, depth)


def _of_parameter(listing: Listing, function: Function, place: int, parameter: ast.arg) -> Classes:
    """What a parameter is noted to be; where nothing is, by the method that this one overrides."""
    owner = function.owner
    if parameter.annotation is not None or owner is None or not function.is_method:
        return _declared(listing, function, parameter)
    for entry in listing.program.mro(owner).classes[1:]:
        for facts in entry.facts.methods:
            if facts.name != function.node.name:
                continue
            overridden = listing.function(entry.module, facts)
            others = list(_parameters(overridden)) if overridden is not None else []
            named = [other for other in others if other.arg == parameter.arg]
            meant = named or others[place : place + 1]
            if overridden is not None and meant and meant[0].annotation is not None:
                return _declared(listing, overridden, meant[0])
    return ()


def _of_attribute(listing: Listing, owner: ClassSymbol, name: str, depth: int) -> Iterator[Classes]:
    for method, _, annotation in attribute_settings(listing, owner, name):
        if annotation is not None and not _is_open(annotation):
            yield annotated(listing, method, annotation)
            return  # what is declared holds for every assignment
    for method, value, _ in attribute_settings(listing, owner, name):
        if value is not None and not _is_none(value):
            yield classes_of(listing, method, value, depth - 1)


def attribute_settings(listing: Listing, owner: ClassSymbol, name: str) -> tuple[Setting, ...]:
    """(method, value, annotation) of every `self.name = value` in the class and its ancestors.

    A property of that name comes alone, as itself, without value and annotation.
    """
    key = (owner, name)
    if key not in listing.settings:
        listing.settings[key] = tuple(_settings(listing, owner, name))
    return listing.settings[key]


def _settings(listing: Listing, owner: ClassSymbol, name: str) -> Iterator[Setting]:
    for entry in listing.program.mro(owner).classes:
        for facts in entry.facts.methods:
            if facts.name != name and not listing.sets(entry.module, facts, f"self.{name}"):
                continue
            method = listing.function(entry.module, facts)
            if method is None:
                continue
            if facts.name == name and method.is_property:
                yield method, None, None
                return
            for node in method.mentions.get(name, ()):
                if isinstance(node, ast.Assign):
                    yield from ((method, value, None) for value in _given(node, name))
                elif isinstance(node, ast.AnnAssign) and _is_own(node.target, name):
                    yield method, node.value, node.annotation
                elif isinstance(node, ast.AugAssign) and _is_own(node.target, name):
                    yield method, ast.BinOp(node.target, node.op, node.value), None


def _given(node: ast.Assign, name: str) -> Iterator[ast.expr]:
    """What an assignment gives `self.name`, as one of several things too."""
    for target in node.targets:
        for inner, element in unpacked(target, ()):
            if _is_own(inner, name):
                yield element_of(node.value, element)


def _is_own(target: ast.expr, name: str) -> bool:
    return dotted_name(target) == f"self.{name}"


def meant(listing: Listing, function: Function, node: ast.expr, depth: int = _DEPTH) -> Classes:
    """The classes that `node` is itself: by its name, by a variable, by a method that returns one.

    Empty where that cannot be told of every value it may have.
    """
    dotted = dotted_name(node)
    if dotted is not None:
        found = function.named(listing.program.linker, dotted)
        if isinstance(found, ClassSymbol):
            return (found,)
    if depth == 0:
        return ()
    candidates: list[Classes] = []
    if isinstance(node, ast.Name):
        values = _assigned(function, node.id)
        candidates = [meant(listing, function, value, depth - 1) for value in values]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        owners = meant(listing, function, node.func.value, depth - 1)
        given = (listing.program.result(owner, node.func.attr) for owner in owners)
        candidates = [(symbol,) if symbol is not None else () for symbol in given]
    if not all(candidates):
        return ()
    return tuple(dict.fromkeys(symbol for classes in candidates for symbol in classes))


def _assigned(function: Function, name: str) -> list[ast.expr]:
    """What a function assigns to a variable of its own; nothing where it is bound otherwise too."""
    given = [
        node.value
        for node in function.mentions.get(name, ())
        if isinstance(node, ast.Assign) and any(dotted_name(t) == name for t in node.targets)
    ]
    bound = [b for b in function.bindings if b.name == name]
    return given if len(bound) == len(given) else []


def _handed(listing: Listing, function: Function, callee: ast.expr) -> Classes:
    """What a call of a parameter gives that is noted as a `Callable[…, C]`."""
    name = callee.id if isinstance(callee, ast.Name) else ""
    noted = next((p.annotation for p in _parameters(function) if p.arg == name), None)
    if not isinstance(noted, ast.Subscript) or function.rebinds(name):
        return ()
    named = (dotted_name(noted.value) or "").rpartition(".")[2]
    given = noted.slice.elts if isinstance(noted.slice, ast.Tuple) else []
    if named != "Callable" or len(given) != 2:
        return ()
    scopes = function.outer.scopes if function.outer is not None else ()
    return _named(listing, function.module, scopes, given[1])


def _declared(listing: Listing, function: Function, parameter: ast.arg) -> Classes:
    """The classes that a parameter is annotated with, outside of the function's own body."""
    scopes = function.outer.scopes if function.outer is not None else ()
    return _named(listing, function.module, scopes, parameter.annotation)


def annotated(listing: Listing, function: Function, annotation: ast.expr | None) -> Classes:
    """The classes of the program that an annotation names (`C`, `"C"`, `C | None`, `A | B`).

    A generic class is meant whatever its argument is, and a type variable stands for its bound.
    """
    return _named(listing, function.module, function.scopes, annotation)


def _named(
    listing: Listing, module: Module, scopes: Scopes, annotation: ast.expr | None
) -> Classes:
    found = (
        symbol
        for name in annotation_names(annotation)
        for symbol in bounded(listing.program.linker.name(module, name, scopes))
    )
    return tuple(dict.fromkeys(found))


def bounded(symbol: Symbol) -> Iterator[ClassSymbol]:
    """The classes that what a name in an annotation stands for is an instance of."""
    if isinstance(symbol, ClassSymbol):
        yield symbol
    elif isinstance(symbol, Variable):
        yield from (bound for bound in symbol.bounds if isinstance(bound, ClassSymbol))


def _is_open(annotation: ast.expr) -> bool:
    """Whether an annotation lets anything in (`Any`, `object | None`)."""
    names = [name.rpartition(".")[2] for name in annotation_names(annotation)]
    return bool(names) and all(name in ("Any", "object") for name in names)


def annotation_names(annotation: ast.expr | None) -> Iterator[str]:
    """The dotted names of the classes that an annotation lets in."""
    if annotation is None:
        return
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            yield from annotation_names(ast.parse(annotation.value, mode="eval").body)
        except SyntaxError:
            return
    elif isinstance(annotation, ast.BinOp):
        yield from annotation_names(annotation.left)
        yield from annotation_names(annotation.right)
    elif isinstance(annotation, ast.Subscript):
        name = (dotted_name(annotation.value) or "").rpartition(".")[2]
        if name in ("Optional", "Annotated"):
            yield from annotation_names(annotation.slice)
        elif name == "Union" and isinstance(annotation.slice, ast.Tuple):
            for member in annotation.slice.elts:
                yield from annotation_names(member)
        else:
            yield from annotation_names(annotation.value)
    else:
        dotted = dotted_name(annotation)
        if dotted is not None:
            yield dotted


def _parameters(function: Function) -> Iterator[ast.arg]:
    spec = function.node.args
    yield from (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)
