"""What vllm#55780 did between 0.29.0 and 0.30.0, as `dcplint diff` tells it."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.run.conftest import dcplint as dcplint
from tests.run.tree import Command

pytestmark = pytest.mark.crater


def test_the_flip(dcplint: Command, tree: Callable[[str], Path]) -> None:
    dcplint("diff", tree("vllm-0.29.0"), tree("vllm-0.30.0"), "--output-format", "json")
    assert dcplint.status == 1
    document = json.loads(dcplint.out)
    found = [c for c in document["capabilities"] if c["capability"] == "supports_dcp"]
    told = Counter(
        (c["change"], (c["before"] or {}).get("origin"), c["after"]["origin"], c["after"]["value"])
        for c in found
        if c["level"] == "concrete"
    )
    assert told == {
        ("lost", "default", "default", False): 20,
        ("lost", "default", "explicit", False): 1,
        ("declared", "default", "explicit", True): 11,
        ("inherited", "default", "inherited", True): 4,
        ("new", None, "explicit", False): 1,  # B12xPagedAttentionImpl
        ("new", None, "default", False): 1,  # FlashInferMLASparseSM90Impl
        ("new", None, "unknown", None): 1,  # CompositeAttentionImpl asks the impls it is made of
    }
    (base,) = (c for c in found if c["level"] == "base")
    assert (base["class"], base["before"]["value"], base["after"]["value"]) == (
        "AttentionImplBase",
        True,
        False,
    )
    lost_by_default = [c for c in found if c["after"]["origin"] == "default"]
    assert {c["cause"] for c in lost_by_default if c["change"] == "lost"} == {"AttentionImplBase"}
    inherited = {c["class"]: c["cause"] for c in found if c["change"] == "inherited"}
    declared = {c["class"] for c in found if c["change"] == "declared"}
    assert set(inherited.values()) <= declared
    asked = Counter(tuple(c["asked_by"]) for c in found if c["level"] == "concrete")
    assert asked == {("selection: validate_configuration()",): 35, (): 4}
    fixed = Counter(f["code"] for f in document["findings"]["fixed"])
    assert fixed["DCP101"] == 36
