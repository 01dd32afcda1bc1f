"""An unpacked engine release seen through `ast` alone, as `packs check` wants to see it."""

from __future__ import annotations

import ast
from pathlib import Path

from dcplint.contracts.checking.engine import Place

Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


class AstEngine:
    def __init__(self, root: Path) -> None:
        self.root = root
        self._modules: dict[str, tuple[str, ast.Module] | None] = {}

    def resolve(self, name: str) -> str | None:
        parts = name.split(".")
        for cut in range(len(parts), 0, -1):
            module = ".".join(parts[:cut])
            if self._module(module):
                return self._inside(module, parts[cut:], frozenset())
        return None

    def place(self, name: str) -> Place:
        canonical = self.resolve(name)
        assert canonical is not None
        found = self._node(canonical)
        module, node = found
        path, _ = self._module(module) or ("", None)
        return Place(path, getattr(node, "lineno", 1))

    def bases(self, name: str) -> tuple[str, ...]:
        module, node = self._node(name)
        assert isinstance(node, ast.ClassDef)
        found = []
        for base in node.bases:
            while isinstance(base, ast.Subscript):
                base = base.value
            text = ast.unparse(base)
            found.append(self._inside(module, text.split("."), frozenset()) or text)
        return tuple(found)

    def methods(self, name: str) -> frozenset[str]:
        return frozenset(s.name for s in self._functions(name))

    def fields(self, name: str) -> frozenset[str]:
        _, node = self._node(name)
        assert isinstance(node, ast.ClassDef)
        annotated = (s.target for s in node.body if isinstance(s, ast.AnnAssign))
        return frozenset(target.id for target in annotated if isinstance(target, ast.Name))

    def abstract_methods(self, name: str) -> frozenset[str]:
        return frozenset(
            s.name
            for s in self._functions(name)
            if any("abstractmethod" in ast.unparse(d) for d in s.decorator_list)
        )

    def class_value(self, name: str, attribute: str) -> object:
        _, node = self._node(name)
        assert isinstance(node, ast.ClassDef)
        for statement in reversed(node.body):
            value = _assigned(statement, attribute)
            if value is not None:
                return ast.literal_eval(value)
        return None

    def parameters(self, function: str) -> tuple[str, ...]:
        _, node = self._node(function)
        assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        a = node.args
        return tuple(p.arg for p in (*a.posonlyargs, *a.args, *a.kwonlyargs))

    def mentions(self, function: str, name: str) -> bool:
        _, node = self._node(function)
        for child in ast.walk(node):
            if isinstance(child, ast.Attribute) and child.attr == name:
                return True
            if isinstance(child, ast.Name) and child.id == name:
                return True
            if isinstance(child, ast.Constant) and child.value == name:
                return True
        return False

    def source_line(self, path: str, line: int) -> str | None:
        file = self.root / path
        if not file.is_file():
            return None
        lines = file.read_text(encoding="utf-8").splitlines()
        return lines[line - 1] if line <= len(lines) else None

    def _functions(self, name: str) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
        _, node = self._node(name)
        assert isinstance(node, ast.ClassDef)
        return [s for s in node.body if isinstance(s, ast.FunctionDef | ast.AsyncFunctionDef)]

    def _module(self, name: str) -> tuple[str, ast.Module] | None:
        if name not in self._modules:
            base = name.replace(".", "/")
            self._modules[name] = None
            for path in (f"{base}.py", f"{base}/__init__.py"):
                file = self.root / path
                if file.is_file():
                    self._modules[name] = (path, ast.parse(file.read_text(encoding="utf-8")))
                    break
        return self._modules[name]

    def _inside(self, module: str, parts: list[str], seen: frozenset[str]) -> str | None:
        """The canonical name of `parts` looked up in a module, through its imports."""
        if not parts:
            return module
        key = ".".join((module, *parts))
        found = self._module(module)
        if key in seen or found is None:
            return None
        seen |= {key}
        bound = _bound(found[1], parts[0])
        if isinstance(bound, Definition):
            return key if _member(bound, parts[1:]) else None
        if isinstance(bound, str):
            target = _absolute(bound, module, found[0].endswith("__init__.py"))
            names = [*target.split("."), *parts[1:]]
            for cut in range(len(names), 0, -1):
                if self._module(".".join(names[:cut])):
                    return self._inside(".".join(names[:cut]), names[cut:], seen)
            return ".".join(names)
        if bound is True:
            return key if len(parts) == 1 else None
        below = f"{module}.{parts[0]}"
        return self._inside(below, parts[1:], seen) if self._module(below) else None

    def _node(self, canonical: str) -> tuple[str, ast.AST]:
        parts = canonical.split(".")
        for cut in range(len(parts), 0, -1):
            module = ".".join(parts[:cut])
            found = self._module(module)
            if found:
                node: ast.AST = found[1]
                for part in parts[cut:]:
                    node = _child(node, part) or node
                return module, node
        raise LookupError(canonical)


def _statements(node: ast.AST) -> list[ast.stmt]:
    found: list[ast.stmt] = []
    for statement in getattr(node, "body", []):
        found.append(statement)
        if isinstance(statement, ast.If | ast.Try):
            found += _statements(statement)
            found += getattr(statement, "orelse", [])
            for handler in getattr(statement, "handlers", []):
                found += handler.body
    return found


def _assigned(statement: ast.stmt, name: str) -> ast.expr | None:
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign):
        targets = [statement.target]
    if any(isinstance(t, ast.Name) and t.id == name for t in targets):
        return statement.value
    return None


def _child(node: ast.AST, name: str) -> ast.AST | None:
    for statement in reversed(_statements(node)):
        if isinstance(statement, Definition) and statement.name == name:
            return statement
        if _assigned(statement, name) is not None:
            return statement
    return None


def _member(node: ast.AST, parts: list[str]) -> bool:
    for part in parts:
        child = _child(node, part)
        if child is None:
            return False
        node = child
    return True


def _bound(tree: ast.Module, name: str) -> Definition | str | bool | None:
    """What a module binds a name to: a definition, an import (as text), or something else."""
    for statement in reversed(_statements(tree)):
        if isinstance(statement, Definition) and statement.name == name:
            return statement
        if isinstance(statement, ast.ImportFrom):
            for alias in statement.names:
                if (alias.asname or alias.name) == name:
                    return "." * statement.level + f"{statement.module or ''}:{alias.name}"
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                if alias.asname == name:
                    return f"{alias.name}:"
                if alias.asname is None and alias.name.split(".")[0] == name:
                    return f"{name}:"
        if _assigned(statement, name) is not None:
            return True
    return None


def _absolute(target: str, module: str, is_package: bool) -> str:
    level = len(target) - len(target.lstrip("."))
    path, _, name = target[level:].partition(":")
    base = module.split(".") if is_package else module.split(".")[:-1]
    prefix = base[: len(base) - level + 1] if level else []
    return ".".join(filter(None, (*prefix, path, name)))
