"""`dcplint capabilities --contract`: producers, gaps and readers as text, markdown and JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass

from dcplint import __version__
from dcplint.flow.contract import FieldTable, Place, Reader
from dcplint.flow.fields import Guard
from dcplint.report.escape import printable
from dcplint.report.markup import code, prose, table
from dcplint.report.model import Engine, place_of
from dcplint.report.view import View


@dataclass(frozen=True, slots=True)
class ContractTable:
    """The contract fields of one tree against one engine release."""

    engine: Engine
    fields: tuple[FieldTable, ...]


def text(tables: Sequence[ContractTable], view: View) -> Iterator[str]:
    """One block per field: who fills it in, who leaves it None, who reads it."""
    for shown in tables:
        yield view.paint(shown.engine.title, bold=True)
        for field in shown.fields:
            yield ""
            owed = "nobody owes it" if field.field.optional else "owed under DCP"
            name = view.paint(printable(field.field.name), bold=True)
            yield f"{name}  {printable(field.field.summary)} ({owed})"
            for place in field.producers:
                yield f"  {view.paint('filled in', 'green')}  {_place(place)}"
            for place in field.gaps:
                yield f"  {view.paint('left None', 'red')}  {_place(place)}"
            for reader in field.readers:
                yield f"  {view.paint('read', 'cyan')}       {_reader(reader)}"
            if not (field.producers or field.gaps or field.readers):
                yield "  nothing here fills it in or reads it"
        yield ""


def markdown(tables: Sequence[ContractTable], _: View) -> Iterator[str]:
    """One table per field, a row per place."""
    for shown in tables:
        yield f"### {prose(shown.engine.title)}"
        for field in shown.fields:
            yield ""
            yield f"{code(field.field.name)}: {prose(field.field.summary)}"
            yield ""
            yield from table(("", "function", "place", "under", "reaches"), _rows(field))
        yield ""


def as_json(tables: Sequence[ContractTable], _: View) -> Iterator[str]:
    """The whole table."""
    document = {
        "schema_version": 1,
        "tool": {"name": "dcplint", "version": __version__},
        "contracts": [
            {
                "engine": asdict(shown.engine),
                "fields": [_field(field) for field in shown.fields],
            }
            for shown in tables
        ],
    }
    yield from json.dumps(document, indent=2).splitlines()


FORMATS: dict[str, Callable[[Sequence[ContractTable], View], Iterator[str]]] = {
    "text": text,
    "markdown": markdown,
    "json": as_json,
}


def _place(place: Place) -> str:
    reaches = ", ".join(place.reaches)
    return f"{_where(place)}{_under(place.guard)}; reaches {printable(reaches)}"


def _reader(reader: Reader) -> str:
    unknown = "" if reader.closed else "; some ways to it are unknown"
    return f"{_where(reader)}{_under(reader.guard)}{unknown}"


def _where(place: Place | Reader) -> str:
    return f"{printable(place.symbol)}  {place_of(place.location)}"


def _under(guard: Guard) -> str:
    return f"  under `{printable(_tests(guard))}`" if _tests(guard) else ""


def _tests(guard: Guard) -> str:
    return " and ".join(filter(None, (guard.implied, guard.others)))


def _rows(field: FieldTable) -> Iterator[tuple[str, ...]]:
    for what, places in (("filled in", field.producers), ("left None", field.gaps)):
        for place in places:
            yield _cells(what, place, ", ".join(map(code, place.reaches)))
    for reader in field.readers:
        yield _cells("read", reader, "" if reader.closed else "some ways are unknown")


def _cells(what: str, place: Place | Reader, reaches: str) -> tuple[str, ...]:
    tests = _tests(place.guard)
    under = code(tests) if tests else ""
    return what, code(place.symbol), prose(place_of(place.location)), under, reaches


def _field(table: FieldTable) -> dict[str, object]:
    return {
        "name": table.field.name,
        "record": table.field.record,
        "summary": table.field.summary,
        "optional": table.field.optional,
        "producers": [_as_json(place) for place in table.producers],
        "gaps": [_as_json(place) for place in table.gaps],
        "readers": [_as_json(reader) for reader in table.readers],
    }


def _as_json(place: Place | Reader) -> dict[str, object]:
    found: dict[str, object] = {
        "symbol": place.symbol,
        "path": place.location.path,
        "line": place.location.line,
        "guard": {"implied_by_dcp": place.guard.implied, "other": place.guard.others},
    }
    if isinstance(place, Reader):
        return {**found, "every_way_known": place.closed}
    return {**found, "text": place.text, "reaches": list(place.reaches)}
