"""docs/packs.md explains every key, and its examples are packs."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from dcplint.contracts.load import load_pack
from dcplint.contracts.packs import find_packs
from dcplint.data import data_dir

PAGE = (Path(__file__).parents[2] / "docs" / "packs.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^ *```yaml\n(.*?)^ *```$", PAGE, re.MULTILINE | re.DOTALL)


def keys(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        properties = schema.get("properties")
        if isinstance(properties, dict) and schema.get("additionalProperties") is False:
            yield from properties
        for inner in schema.values():
            yield from keys(inner)


def test_every_key_is_explained() -> None:
    schema = json.loads((data_dir("rules") / "pack.schema.json").read_text())
    explained = set(re.findall(r"`([a-z-]+)`", PAGE))
    assert set(keys(schema)) - explained == set()


def test_the_first_example_is_a_pack(tmp_path: Path) -> None:
    text = "".join(re.sub(r"^    ", "", block, flags=re.MULTILINE) for block in BLOCKS[:3])
    path = tmp_path / "toy.yaml"
    path.write_text(text, encoding="utf-8")
    pack = load_pack(path)
    assert (len(pack.classes), len(pack.capabilities), len(pack.gates)) == (1, 1, 1)


def test_the_fork_is_the_one_that_ships() -> None:
    shown = yaml.safe_load(BLOCKS[3])
    shipped = yaml.safe_load(find_packs()["aphrodite"].file.read_text(encoding="utf-8"))
    assert {**shipped, "lacks": shipped["lacks"][:1]}.items() >= shown.items()
