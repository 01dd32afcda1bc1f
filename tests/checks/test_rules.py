"""What every rule file owes: documentation, fixtures, a probe, one declaration, true examples."""

import ast
import re
from pathlib import Path

import pytest

from dcplint.checks.base import DOC_SECTIONS, Context, Registered, all_rules
from dcplint.findings.model import Severity
from tests.checks.fixture import CODED, FIXTURES, fixtures, lint

CHECKS = Path(__file__).parents[2] / "dcplint" / "checks"

# What the examples take for granted: the release they speak of, imports, and the class next door.
_IMPORTS = """\
from abc import ABC, abstractmethod

from vllm.distributed.parallel_state import get_dcp_group
from vllm.model_executor.layers.attention.mla_attention import MLACommonImpl
from vllm.v1.attention.backend import AttentionBackend, AttentionImpl
from vllm.v1.attention.backends.flash_attn import FlashAttentionImpl
from vllm.v1.attention.ops.dcp import cp_lse_ag_out_rs

from .kernels import kernel, padded_attention


class Constructed:
    def __init__(self, *args, **kwargs): ...

    def forward(self, *args): ...

    def forward_mqa(self, *args): ...


"""
_RELEASE = {"DCP101": "0.29.0", "DCP102": "0.29.0", "DCP106": "0.29.0"}
_FILE = {
    "DCP102": "vllm/v1/attention/backend.py",
    "DCP106": "vllm/model_executor/layers/attention_layer_base.py",
}
_COMPLETION = {
    "DCP105": "\n    def __init__(self, *args): ...\n\n    def forward_mqa(self, *args): ...\n",
    "DCP109": "\n\nclass MyImpl(AttentionImpl):\n    supports_dcp = False\n",
}


def _code(registered: Registered) -> str:
    return registered.rule.code


def _sections(documentation: str) -> dict[str, str]:
    parts = re.split(r"^## (.+)$", documentation, flags=re.M)
    return dict(zip(parts[1::2], (text.strip() for text in parts[2::2]), strict=True))


@pytest.mark.parametrize("registered", all_rules(), ids=_code)
def test_documentation_is_complete(registered: Registered) -> None:
    summary, *_ = registered.documentation.splitlines()
    sections = _sections(registered.documentation)
    assert summary.endswith(".") and len(summary) < 100
    assert tuple(sections) == DOC_SECTIONS
    assert all(sections.values())


@pytest.mark.parametrize("registered", all_rules(), ids=_code)
def test_declaration_agrees_with_the_file(registered: Registered) -> None:
    rule = registered.rule
    assert re.fullmatch(r"DCP\d{3}", rule.code)
    assert re.fullmatch(r"[a-z]+(-[a-z]+)+", rule.name)
    assert registered.module.endswith(f".{rule.code.lower()}_{rule.name.replace('-', '_')}")
    assert rule.summary.startswith("flags ")
    assert rule.probe.removeprefix("none:").strip()
    assert isinstance(rule.severity, Severity)


def test_codes_and_names_are_unique() -> None:
    rules = [r.rule for r in all_rules()]
    assert len({rule.code for rule in rules}) == len({rule.name for rule in rules}) == len(rules)


def test_a_rule_is_declared_once_and_registered_nowhere() -> None:
    files = sorted(CHECKS.glob("dcp*.py"))
    assert len(files) == len(all_rules())
    for path in files:
        names = [
            target.id
            for node in ast.parse(path.read_text()).body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        ]
        assert names.count("RULE") == 1
    package = CHECKS.parent
    for path in package.rglob("*.py"):
        if path.parent != CHECKS:
            # Only the run, which reports unreadable files itself, and suppressions name a rule.
            named = re.findall(r"checks\.(dcp(?!00)\w+)", path.read_text())
            assert not named, f"{path} names {named}"


@pytest.mark.parametrize("registered", CODED, ids=_code)
def test_fixtures_are_enough(registered: Registered) -> None:
    rule = registered.rule
    folder = FIXTURES / registered.module.rpartition(".")[2]
    mine = [f for f in fixtures() if f.path.parent == folder]
    assert sum(f.is_bad for f in mine) >= 1, f"{rule.code} has no bad fixture"
    assert sum(not f.is_bad for f in mine) >= 2, f"{rule.code} has fewer than two good fixtures"


@pytest.mark.parametrize("registered", CODED, ids=_code)
def test_whether_a_rule_follows_fields_is_as_declared(
    registered: Registered, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, asked = FIXTURES / registered.module.rpartition(".")[2], []
    fields = Context.fields.func
    monkeypatch.setattr(Context, "fields", property(lambda c: (asked.append(c), fields(c))[1]))
    for fixture in (f for f in fixtures() if f.path.parent == folder and f.is_bad):
        lint(
            {fixture.place: fixture.text},
            tmp_path,
            fixture.engine,
            frozenset({registered.rule.code}),
        )
    assert bool(asked) is registered.rule.follows


def test_no_folder_of_fixtures_is_without_its_rule() -> None:
    folders = {f.path.parent.name for f in fixtures()}
    assert folders <= {r.module.rpartition(".")[2] for r in all_rules()}


@pytest.mark.parametrize("section", ["Bad", "Good"])
@pytest.mark.parametrize("registered", CODED, ids=_code)
def test_examples_are_true(registered: Registered, section: str, tmp_path: Path) -> None:
    code = registered.rule.code
    text = _sections(registered.documentation)[section]
    (example,) = re.findall(r"```python\n(.*?)```", text, flags=re.S)
    if "import" not in example:
        example = _IMPORTS + example.replace("(AttentionImpl)", "(Constructed, AttentionImpl)")
        example = example.replace("(MLACommonImpl)", "(Constructed, MLACommonImpl)")
        example += _COMPLETION.get(code, "")
    if code in _FILE:
        example = re.sub(r"^from (vllm|\.).*$", "", example, flags=re.M)
        example = example.partition("class Constructed")[0] + example.rpartition("...\n\n\n")[2]
    engine = f"vllm=={_RELEASE.get(code, '0.30.0')}"
    report = lint({_FILE.get(code, "example.py"): example}, tmp_path, engine)
    assert report.errors == ()
    assert (code in {f.code for f in report.findings}) is (section == "Bad"), example
