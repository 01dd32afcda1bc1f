"""Whether a run comes to the statement that a finding is about.

A backend can pass every probe without ever executing the line in question, and then says nothing
about it. So that a run can tell, the functions that hold the line get a mark put before the
statement: in the process of one probe, in memory, with line numbers as they were.
"""

from __future__ import annotations

import ast
import builtins
import gc
import inspect
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

_MARK = "__dcplint_reached__"


@dataclass(slots=True)
class Watch:
    """reached: whether the statement was executed; None where the line is not in a function."""

    reached: bool | None = None


def watch(path: Path, line: int) -> Watch:
    """Watch the innermost statement at `line`; a function's header stands for its first statement.

    The file's functions must have been made already. One watch per process.
    """
    watched = Watch()
    source = path.read_bytes()
    if not _marked(ast.parse(source), line):
        return watched
    watched.reached = False

    def mark() -> None:
        watched.reached = True

    setattr(builtins, _MARK, mark)
    codes: dict[str, dict[tuple[str, int], CodeType]] = {}
    for function in _functions_of(path):
        name = function.__code__.co_filename
        if name not in codes:
            tree = ast.parse(source)
            _marked(tree, line)
            codes[name] = {_key(code): code for code in _codes(compile(tree, name, "exec"))}
        code = codes[name].get(_key(function.__code__))
        if code is not None and code.co_freevars == function.__code__.co_freevars:
            function.__code__ = code
    _mark_interpreted(path, line)
    return watched


def _marked(tree: ast.AST, line: int) -> bool:
    """Put the mark before the statement; whether there is one inside a function."""
    place = _place(tree, line, in_function=False)
    if place is None:
        return False
    body, index = place
    call = ast.Expr(ast.Call(ast.Name(_MARK, ast.Load()), [], []))
    mark = ast.copy_location(call, body[index])
    body.insert(index, ast.fix_missing_locations(mark))
    return True


def _place(node: ast.AST, line: int, *, in_function: bool) -> tuple[list[ast.stmt], int] | None:
    """The list that holds the innermost statement at `line`, and its index."""
    for _, value in ast.iter_fields(node):
        for index, child in enumerate(value if isinstance(value, list) else ()):
            if not isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
                continue
            if not isinstance(child, ast.match_case) and not _first(child) <= line <= _last(child):
                continue
            is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
            inner = _place(child, line, in_function=in_function or is_function)
            if inner is not None:
                return inner
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) and not in_function:
                return child.body, _after_docstring(child)
            if in_function and isinstance(child, ast.stmt):
                return value, index
    return None


def _after_docstring(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return int(ast.get_docstring(function, clean=False) is not None and len(function.body) > 1)


def _first(node: Any) -> int:
    decorators = getattr(node, "decorator_list", ())
    return min([node.lineno, *(d.lineno for d in decorators)])


def _last(node: Any) -> int:
    return int(node.end_lineno)


def _functions_of(path: Path) -> Iterator[FunctionType]:
    wanted = os.path.realpath(path)
    names: dict[str, bool] = {}
    for found in gc.get_objects():
        if type(found) is FunctionType:
            name = found.__code__.co_filename
            if name not in names:
                names[name] = os.path.realpath(name) == wanted
            if names[name]:
                yield found


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _key(code: CodeType) -> tuple[str, int]:
    return code.co_name, code.co_firstlineno


def _mark_interpreted(path: Path, line: int) -> None:
    """Kernels: the interpreter makes their functions anew from source, at the first launch."""
    from triton.runtime import interpreter as it

    wanted = os.path.realpath(path)
    rewriter: Any = it.FunctionRewriter
    transform = rewriter._transform_ast

    def transform_and_mark(self: Any, source: str) -> ast.AST:
        tree: ast.AST = transform(self, source)
        if os.path.realpath(self.filename) == wanted:
            _marked(tree, line)
        return tree

    rewriter._transform_ast = transform_and_mark
    known = it.InterpretedFunction.rewritten_fn
    for function in [f for f in known if os.path.realpath(inspect.getfile(f)) == wanted]:
        del known[function]
