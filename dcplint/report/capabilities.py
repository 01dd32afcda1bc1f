"""`dcplint capabilities`: the matrix as text, markdown and JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass

from dcplint import __version__
from dcplint.program.attributes import Kind
from dcplint.program.matrix import Cell, Row
from dcplint.report.escape import printable
from dcplint.report.markup import code, prose, table
from dcplint.report.model import Engine, place_of
from dcplint.report.view import View

_KIND_COLORS = {Kind.DEFAULT: "yellow", Kind.UNKNOWN: "magenta", Kind.INHERITED: "cyan"}


@dataclass(frozen=True, slots=True)
class Matrix:
    """The classes of one tree against one engine release. capabilities: names, in column order."""

    engine: Engine
    capabilities: tuple[str, ...]
    rows: tuple[Row, ...]


def text(matrices: Sequence[Matrix], view: View) -> Iterator[str]:
    """One block per class, one line per capability, each with the place that says it."""
    for index, matrix in enumerate(matrices):
        if index:
            yield ""
        yield view.paint(matrix.engine.title, bold=True)
        if not matrix.capabilities:
            yield from ("", _silent(matrix.engine))
            continue
        width = max(map(len, matrix.capabilities), default=0)
        for row in matrix.rows:
            yield ""
            yield _heading(row, view)
            for cell in row.cells:
                yield f"  {cell.capability:<{width}}  {_answer(cell, view)}"
        yield ""
        yield _totals(matrix)


def markdown(matrices: Sequence[Matrix], _: View) -> Iterator[str]:
    """One table per engine, a row per class."""
    for matrix in matrices:
        yield f"### {prose(matrix.engine.title)}"
        yield ""
        if matrix.capabilities:
            header = ("class", "kind", *map(code, matrix.capabilities))
            yield from table(header, map(_cells, matrix.rows))
        else:
            yield prose(_silent(matrix.engine))
        yield ""


def _cells(row: Row) -> tuple[str, ...]:
    name, place = code(row.symbol.facts.qualname), prose(place_of(row.location))
    said = (f"{prose(_value(cell))} · {cell.resolution.kind.value}" for cell in row.cells)
    return f"{name} {place}", row.level, *said


def _silent(engine: Engine) -> str:
    return (
        f"No class of {engine.name} {engine.release} states whether it serves DCP, as far as its "
        "pack knows, so there is nothing to list. `dcplint check` runs the rules that ask for no "
        "such statement."
    )


def as_json(matrices: Sequence[Matrix], _: View) -> Iterator[str]:
    """The whole matrix with every origin."""
    document = {
        "schema_version": 1,
        "tool": {"name": "dcplint", "version": __version__},
        "matrices": [
            {
                "engine": asdict(matrix.engine),
                "capabilities": list(matrix.capabilities),
                "classes": [_row(row) for row in matrix.rows],
            }
            for matrix in matrices
        ],
    }
    yield from json.dumps(document, indent=2).splitlines()


FORMATS: dict[str, Callable[[Sequence[Matrix], View], Iterator[str]]] = {
    "text": text,
    "markdown": markdown,
    "json": as_json,
}


def _heading(row: Row, view: View) -> str:
    name = view.paint(printable(row.symbol.facts.qualname), bold=True)
    place = place_of(row.location)
    details = [row.level] if row.level != "concrete" else []
    details += [f"runs in {', '.join(row.backends)}"] if row.backends else []
    return f"{name}  {place}" + (f"  ({'; '.join(details)})" if details else "")


def _answer(cell: Cell, view: View) -> str:
    resolution = cell.resolution
    kind = view.paint(f"{resolution.kind.value:<9}", _KIND_COLORS.get(resolution.kind))
    head = f"{_value(cell):<7} {kind}"
    if resolution.kind is Kind.UNKNOWN:
        return f"{head}  {printable(resolution.reason)}"
    if resolution.place is None or cell.location is None:
        return head
    return f"{head}  {resolution.place.owner} at {place_of(cell.location)}"


def _value(cell: Cell) -> str:
    return repr(cell.resolution.value) if cell.resolution.known else "unknown"


def _totals(matrix: Matrix) -> str:
    concrete = sum(row.level == "concrete" for row in matrix.rows)
    count = len(matrix.rows)
    return f"{count} class{'' if count == 1 else 'es'}, {concrete} of them concrete"


def _row(row: Row) -> dict[str, object]:
    return {
        "class": row.symbol.facts.qualname,
        "module": row.symbol.module.facts.name,
        "path": row.location.path,
        "line": row.location.line,
        "level": row.level,
        "abstract_methods": sorted(row.abstract or ()),
        "backends": list(row.backends),
        "capabilities": {cell.capability: _cell(cell) for cell in row.cells},
    }


def _cell(cell: Cell) -> dict[str, object]:
    resolution, location = cell.resolution, cell.location
    at = None
    if resolution.place is not None and location is not None:
        at = {
            "class": resolution.place.owner.facts.qualname,
            "path": location.path,
            "line": location.line,
            "tree": location.tree.value,
        }
    return {
        "value": resolution.value if resolution.known else None,
        "origin": resolution.kind.value,
        "at": at,
        "reason": resolution.reason or None,
    }
