"""`dcplint capabilities --contract`: producers, gaps and readers as text, markdown and JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from dcplint import __version__
from dcplint.findings.model import Location, Tree
from dcplint.flow.contract import FieldTable, Place, Reader
from dcplint.flow.fields import Guard
from dcplint.report.escape import printable
from dcplint.report.model import Engine
from dcplint.report.view import View


@dataclass(frozen=True, slots=True)
class ContractTable:
    """The contract fields of one tree against one engine release."""

    engine: Engine
    fields: tuple[FieldTable, ...]


def text(tables: Sequence[ContractTable], view: View) -> Iterator[str]:
    """One block per field: who fills it in, who leaves it None, who reads it."""
    for table in tables:
        yield view.paint(_title(table), bold=True)
        for field in table.fields:
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
        yield ""


def markdown(tables: Sequence[ContractTable], _: View) -> Iterator[str]:
    """One table per field, a row per place."""
    for table in tables:
        yield f"### {_title(table)}"
        for field in table.fields:
            yield ""
            yield f"`{printable(field.field.name)}`: {printable(field.field.summary)}"
            yield ""
            yield "| | function | place | under | reaches |"
            yield "|---|---|---|---|---|"
            for what, places in (("filled in", field.producers), ("left None", field.gaps)):
                for place in places:
                    reaches = ", ".join(f"`{name}`" for name in place.reaches)
                    yield _row(what, place, reaches)
            for reader in field.readers:
                yield _row("read", reader, "" if reader.closed else "some ways are unknown")
        yield ""


def as_json(tables: Sequence[ContractTable], _: View) -> Iterator[str]:
    """The whole table."""
    document = {
        "schema_version": 1,
        "tool": {"name": "dcplint", "version": __version__},
        "contracts": [
            {
                "engine": {
                    "name": table.engine.name,
                    "release": table.engine.release,
                    "source": table.engine.source,
                },
                "fields": [_field(field) for field in table.fields],
            }
            for table in tables
        ],
    }
    yield from json.dumps(document, indent=2).splitlines()


FORMATS: dict[str, Callable[[Sequence[ContractTable], View], Iterator[str]]] = {
    "text": text,
    "markdown": markdown,
    "json": as_json,
}


def _title(table: ContractTable) -> str:
    engine = table.engine
    return f"{engine.name} {engine.release} ({engine.source})"


def _place(place: Place) -> str:
    reaches = ", ".join(place.reaches)
    return f"{_where(place)}{_under(place.guard)}; reaches {printable(reaches)}"


def _reader(reader: Reader) -> str:
    unknown = "" if reader.closed else "; some ways to it are unknown"
    return f"{_where(reader)}{_under(reader.guard)}{unknown}"


def _where(place: Place | Reader) -> str:
    return f"{printable(place.symbol)}  {_location(place.location)}"


def _location(location: Location) -> str:
    place = f"{printable(location.path)}:{location.line}"
    return place if location.tree is Tree.PROJECT else f"{place} ({location.tree.value})"


def _under(guard: Guard) -> str:
    tests = " and ".join(filter(None, (guard.implied, guard.others)))
    return f"  under `{printable(tests)}`" if tests else ""


def _row(what: str, place: Place | Reader, reaches: str) -> str:
    tests = " and ".join(filter(None, (place.guard.implied, place.guard.others)))
    under = f"`{printable(tests)}`" if tests else ""
    cells = (what, f"`{printable(place.symbol)}`", _location(place.location), under, reaches)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


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
