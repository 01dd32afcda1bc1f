# ruff: noqa: E501  a case of a table is one line

from pathlib import Path

import pytest
from packaging.version import Version

from dcplint.contracts.document import PackError
from dcplint.contracts.load import load_pack
from tests.contracts.example import PACK, toy, write_pack


def refused(tmp_path: Path, *changes: tuple[str, str]) -> str:
    """What is said of the example pack with each first occurrence replaced."""
    text = PACK
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    with pytest.raises(PackError) as caught:
        toy(tmp_path, text)
    message = str(caught.value)
    assert "\n" not in message
    return message


def line_of(text: str) -> int:
    return PACK[: PACK.index(text)].count("\n") + 1


def test_loads_every_kind_of_fact(tmp_path: Path) -> None:
    pack = toy(tmp_path)
    assert (pack.engine, pack.package, pack.distribution) == ("toy", "toy", "toy-engine")
    assert (pack.path, pack.file) == ("toy.yaml", tmp_path / "toy.yaml")
    assert pack.known == (Version("1.0.0"), Version("1.1.0"), Version("2.0.0"))
    mla = next(c for c in pack.classes if c.name == "toy.backend.MlaImpl")
    assert mla.bases == ("toy.backend.Impl", "toy.backend.Mixin")
    assert (mla.role, mla.defines, mla.aliases) == ("impl", ("forward",), ("toy.MlaImpl",))
    assert [c.name for c in pack.implementations] == ["toy.fast.FastImpl"]
    old, gone, _ = pack.moved
    assert (old.kind, old.successor, gone.kind) == ("module", "toy.backend", "name")
    dcp = pack.capabilities[0]
    assert (dcp.role, dcp.owner, dcp.opt_in) == ("impl", "toy.backend.Impl", True)
    assert (dcp.methods, dcp.implies, dcp.encoding) == (
        ("forward",),
        ("returns_lse",),
        "attribute",
    )
    assert [(d.value, str(d.releases)) for d in dcp.defaults] == [(True, "<2"), (False, ">=2")]
    assert dcp.defaults[1].source.text == "toy/backend.py:5@2.0.0, toy#12"
    assert dcp.source.line == line_of("  - name: supports_dcp")
    assert (dcp.overrides[0].owner, dcp.overrides[0].value) == ("toy.fast.FastImpl", True)
    assert dcp.readers[0].function == "toy.backend.Backend.supports_dcp"
    asked = pack.capabilities[2]
    assert (asked.encoding, asked.delegates, asked.defaults) == ("method", "get_impl_cls", ())
    derived = pack.derived[0]
    assert (derived.name, derived.capability) == ("needs_lse", "returns_lse")
    selection, lse = pack.gates
    assert (selection.name, selection.stage) == ("supports_dcp at selection", "selection")
    assert (selection.reads, selection.argument) == ("supports_dcp", "use_dcp")
    assert (lse.reads, lse.capability, lse.role) == ("needs_lse", "returns_lse", "impl")
    assert [s.function for s in lse.callers] == ["toy.select.main"]
    accessor = pack.accessors[0]
    assert (accessor.name, accessor.owner, accessor.returns) == (
        "get_impl_cls",
        "toy.backend.Backend",
        "impl",
    )
    words = pack.vocabulary
    assert (words.sizes, words.ranks, words.groups) == (
        ("dcp_size",),
        ("dcp_rank",),
        ("toy.select.group",),
    )
    assert (words.group_ranks, words.group_sizes) == (("rank_in_group",), ("world_size",))
    assert (words.merges, words.collectives) == (("toy.fast.merge",), ("all_gather",))
    assert words.neutral == ("torch", "abc")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("engine: toy", "engine: Toy", "engine must be an engine name such as my-engine, got 'Toy'"),
        ("engine: toy\n", "", "the pack lacks 'engine'; add it (see docs/packs.md)"),
        ("package: toy\n", "", "the pack lacks 'package'; add it (see docs/packs.md)"),
        ("known: [1.0.0, 1.1.0, 2.0.0]", "known: [1.0, 2.0.0]", "known[0] must be a release, got 1.0 (a number); put it in quotes"),
        ("known: [1.0.0, 1.1.0, 2.0.0]", "known: [new, 2.0.0]", "known[0] must be a release such as 0.30.0, got 'new'"),
        ("known: [1.0.0, 1.1.0, 2.0.0]", "known: []", "known must name the releases that the facts were read in"),
        ("known: [1.0.0, 1.1.0, 2.0.0]", "known: [1.1.0, 1.0.0, 2.0.0]", "known must be in ascending order, each release once"),
        ("known: [1.0.0, 1.1.0, 2.0.0]", "known: 2.0.0", "known must be a list, got '2.0.0'"),
        ("role: impl", "role: imp", "classes[0].role must be one of impl, backend, builder, layer, metadata, runner, drafter, platform, got 'imp'; did you mean 'impl'?"),
        ("role: impl", "role: 3", "classes[0].role must be one of impl, backend, builder, layer, metadata, runner, drafter, platform, got 3"),
        ("    role: impl\n", "", "classes[0] lacks 'role'; add it (see docs/packs.md)"),
        ("abstract: [forward]", "abstrat: [forward]", "unknown key 'abstrat' in classes[0]; did you mean 'abstract'?"),
        ("engine: toy", "engine: toy\nzzz: 1", "unknown key 'zzz'; it may have engine, extends, based-on, rewrite, lacks, joins, package, distribution, known, classes, implementations, moved, capabilities, derived, gates, accessors, vocabulary, fields, refusals, outputs, kernels, lengths, localizers, arguments, blocks"),
        ("abstract: [forward]", "abstract: forward", "classes[0].abstract must be a list, got 'forward'"),
        ("abstract: [forward]", "abstract: [[forward]]", "classes[0].abstract[0] must be a name, got a list"),
        ("abstract: [forward]", "abstract: [a.b]", "classes[0].abstract[0] must be a name such as supports_dcp, got 'a.b'"),
        ("name: toy.backend.Impl", "name: toy..Impl", "classes[0].name must be a dotted name such as engine.attention.Backend, got 'toy..Impl'"),
        ('releases: "<2"', 'releases: "~=2"', "classes[0].releases must be a range of releases such as >=0.26,<0.30, got '~=2'"),
        ('releases: "<2"', "releases: []", "classes[0].releases must name at least one range; leave it out for every release"),
        ("source: toy/backend.py:4@1.1.0", "source: backend.py", "classes[0].source must be a source such as engine/attention.py:12@0.30.0 or repo#123, got 'backend.py'"),
        ("source: toy/backend.py:4@1.1.0", "source: []", "classes[0].source must name at least one place, such as repo#123"),
        ("value: true", "value: 'yes please'", "capabilities[0].defaults[0].value must be true or false, got 'yes please'"),
        ("value: true", "value: ~", "capabilities[0].defaults[0].value must be true or false, got nothing"),
        ("opt-in: true", "opt-in: 1", "capabilities[0].opt-in must be true or false, got 1"),
        ("summary: computes over a shard", "summary: '  '", "capabilities[0].summary must be a sentence such as what it promises, got '  '"),
        ("summary: computes over a shard", "summary:", "capabilities[0].summary must be a sentence, got nothing"),
        ("    encoding: attribute\n", "    delegates: get_impl_cls\n", "capabilities[1].delegates only suits a method; add 'encoding: method'"),
        ("    delegates: get_impl_cls\n", "", "capabilities[2] needs either 'defaults' or 'delegates': where its value is from"),
        ("{value: false, source: toy/backend.py:6@2.0.0}", "true", "capabilities[1].defaults[0] must be a mapping with value, releases, source, got true"),
        ("    releases: \"<1.1\"\n", "", "moved[0] lacks 'releases'; add it (see docs/packs.md)"),
        ("kind: module", "kind: package", "moved[0].kind must be one of name, module, got 'package'"),
        ("engine: toy", "engine: toy\nrewrite: {a.: b.}", "rewrite says how to read another pack; add 'extends'"),
        ("engine: toy", "engine: toy\nextends: vllm", "extends names 'vllm', and there is no pack of that engine to extend"),
    ],
)  # fmt: skip
def test_refuses_in_one_sentence(tmp_path: Path, old: str, new: str, message: str) -> None:
    said = refused(tmp_path, (old, new))
    place, _, said = said.partition(": ")
    assert said == message
    assert place.startswith("toy.yaml:")


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("value: true", "value: 3", line_of("value: true")),
        ("    opt-in: true\n", "    opt_in: true\n", line_of("    opt-in: true")),
        ("    owner: toy.backend.Impl\n", "", line_of("  - name: supports_dcp")),
        ("  - {name: all_gather, source: toy#1}", "  - 7", line_of("  - {name: all_gather")),
    ],
)
def test_names_the_line(tmp_path: Path, old: str, new: str, line: int) -> None:
    assert refused(tmp_path, (old, new)).startswith(f"toy.yaml:{line}: ")


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('releases: "<2"\n    source: toy/backend.py:4@1', 'releases: "<1"\n    source: toy/backend.py:4@1', "'releases: <1' holds in none of the pack's releases (1.0.0 to 2.0.0); correct the range"),
        ('releases: ">=2"\n    source: toy/backend.py:4@2', 'source: toy/backend.py:4@2', f"says the same as line {line_of('  - name: toy.backend.Impl')} of toy.yaml about 1.0.0; give the two different 'releases'"),
        ("implies: [returns_lse]", "implies: [returns]", "'implies: returns' names no capability of role impl; add or correct it"),
        ("delegates: get_impl_cls", "delegates: get_impl", "'delegates: get_impl' names no accessor of role backend; add it under 'accessors'"),
        ("returns: impl", "returns: builder", "'name: supports_dcp' names no capability of role builder; add or correct it"),
        ("capability: returns_lse", "capability: returns", "'capability: returns' names no capability of role impl; add or correct it"),
        ("reads: needs_lse", "reads: wants_lse", "'reads: wants_lse' is neither the capability nor a value derived from it; add it under 'derived'"),
        ("        role: backend\n        argument", "        role: layer\n        argument", "'capability: supports_dcp' names no capability of role layer; add or correct it"),
        ("{value: true, releases: \"<2\",", "{value: true, releases: \"<1.1\",", "capability supports_dcp has no default in 1.1.0; add it or correct 'releases'"),
        ("    source: toy/backend.py:6@2.0.0\n    defaults:", "    releases: \">=1.1\"\n    source: toy/backend.py:6@2.0.0\n    defaults:", "capability returns_lse has a default in 1.0.0, where its 'releases' do not hold; correct one of them"),
        ("{value: false, releases: \">=2\"", "{value: false, releases: \">=1.1\"", f"says the same as line {line_of('{value: true,')} of toy.yaml about 1.1.0; give the two different 'releases'"),
        ("{name: dcp_rank, source: toy#1}", "{name: dcp_rank, source: toy#1}\n    - {name: dcp_rank, source: toy#1}", f"says the same as line {line_of('{name: dcp_rank')} of toy.yaml about 1.0.0; give the two different 'releases'"),
    ],
)  # fmt: skip
def test_refuses_facts_that_do_not_fit_together(
    tmp_path: Path, old: str, new: str, problem: str
) -> None:
    assert refused(tmp_path, (old, new)).partition(": ")[2] == problem


def test_a_range_may_be_a_list_of_ranges(tmp_path: Path) -> None:
    text = PACK.replace('releases: "<1.1"', 'releases: ["<1.1", ">=2"]', 1)
    releases = toy(tmp_path, text).moved[0].releases
    assert [Version(v) in releases for v in ("1.0", "1.1", "2.0")] == [True, False, True]
    assert str(releases) == "<1.1 or >=2"


def test_messages_call_the_file_by_its_path(tmp_path: Path) -> None:
    path = write_pack(tmp_path, "engine: 3\n")
    with pytest.raises(PackError) as caught:
        load_pack(path)
    assert str(caught.value).startswith(f"{path.as_posix()}:1: engine must be")
