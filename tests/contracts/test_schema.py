"""The loader and the JSON Schema accept and refuse the same packs."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from dcplint.contracts import load
from dcplint.contracts.document import PackError
from dcplint.contracts.packs import find_packs
from dcplint.data import data_dir
from tests.contracts.example import PACK, toy

HEIR = """\
engine: fork
extends: toy
known: [5.0.0]
based-on: {">=5,<6": 2.0.0}
rewrite: {toy.: fork., MlaImpl: Mla}
lacks:
  - {role: impl, capability: supports_dcp, source: fork/backend.py:1@5.0.0}
"""
WRONG: tuple[Any, ...] = (7, 1.5, True, "a b", "", None, [], {}, ["x y"], [3], {"x": 1})

SECTIONS = (
    *("classes", "implementations", "moved", "capabilities", "derived", "gates"),
    *("accessors", "vocabulary", "lacks", "lengths", "localizers", "arguments", "blocks"),
)

# How a refusal reads that is about what packs say, and not about their form.
BEYOND = ("does not know", "must say which release", "must end both", "names no capability")

SCHEMA = json.loads((data_dir("rules") / "pack.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value below `value`."""
    if path:
        yield path
    if isinstance(value, (dict, list)):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in items:
            yield from places(inner, (*path, key))


def at(document: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        document = document[key]
    return document


def variants(document: Any) -> Iterator[tuple[str, Any]]:
    """`document` with one value missing, replaced, or in unknown company, at each of its places.

    Of a pack with a section, the places in that section.
    """
    section = list(document)[-1]
    for path in places(document):
        if section in SECTIONS and path[0] != section:
            continue
        changed = copy.deepcopy(document)
        del at(changed, path[:-1])[path[-1]]
        yield f"without {path}", changed
        for wrong in WRONG:
            changed = copy.deepcopy(document)
            at(changed, path[:-1])[path[-1]] = wrong
            yield f"{path} = {wrong!r}", changed
        if isinstance(at(document, path), dict):
            changed = copy.deepcopy(document)
            at(changed, path)["surprise"] = "x"
            yield f"surprise in {path}", changed


def sections(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Small packs that together hold all of `document`: its head, alone and with one section."""
    head = {key: value for key, value in document.items() if key not in SECTIONS}
    yield head
    yield from ({**head, key: document[key]} for key in SECTIONS if key in document)


SMALL = [
    pytest.param(section, id=f"{name}-{list(section)[-1]}")
    for name, text in (("pack", PACK), ("heir", HEIR))
    for section in sections(yaml.safe_load(text))
]


@pytest.mark.parametrize("document", SMALL)
def test_loader_and_schema_agree(
    document: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = toy(tmp_path)
    # Whether facts fit together is beyond a schema; this is about their form.
    monkeypatch.setattr(load, "check", lambda pack: None)
    outcomes = set()
    for what, changed in [("as it is", document), *variants(document)]:
        path = tmp_path / "changed.yaml"
        path.write_text(json.dumps(changed), encoding="utf-8")  # which is YAML too
        try:
            load.load_pack(path, find_parent=lambda name: parent)
        except PackError as error:
            refusal: str | None = str(error)
            if any(words in str(error) for words in BEYOND):
                continue
        else:
            refusal = None
        outcomes.add(refusal is None)
        assert VALIDATOR.is_valid(changed) is (refusal is None), f"{what}: {refusal}"
    assert outcomes == {True, False}


@pytest.mark.parametrize("name", find_packs())
def test_built_in_packs_follow_the_schema(name: str) -> None:
    text = (data_dir("rules") / f"{name}.yaml").read_text(encoding="utf-8")
    VALIDATOR.validate(yaml.safe_load(text))


def test_schema_is_valid() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
