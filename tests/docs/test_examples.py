"""What the pages show is true: commands print it, configurations load, links lead somewhere."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from dcplint.checks.base import all_rules
from dcplint.cli.main import main
from dcplint.config import _KEYS, find_config
from dcplint.findings.catalogue import Catalogue
from docs.generate.configuration import keys
from tests.docs.pages import PAGES, ROOT, Block, blocks


def shown_commands() -> Iterator[tuple[str, str, str]]:
    """Page, command and output of each command that is shown with its output."""
    for block in blocks("console"):
        for part in re.split(r"^ *\$ ", block.text, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            if output.strip():
                yield block.page, command, output


@pytest.mark.parametrize(("page", "command", "output"), [*shown_commands()])
def test_commands_print_what_is_shown(
    page: str,
    command: str,
    output: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`...` stands for anything."""
    monkeypatch.chdir(ROOT)
    program, *args = shlex.split(command)
    assert program == "dcplint", page
    with pytest.raises(SystemExit) as exit_:
        main(args)
    assert exit_.value.code in (0, 1)
    pattern = re.escape(output).replace(re.escape("..."), ".*")
    assert re.fullmatch(pattern, capsys.readouterr().out, re.DOTALL)


def test_the_first_command_of_the_readme(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (args,) = re.findall(r"^python3 -m venv .* \.venv/bin/dcplint (.*)$", text, re.MULTILINE)
    monkeypatch.chdir(ROOT)
    with pytest.raises(SystemExit) as exit_:
        main(shlex.split(args))
    assert exit_.value.code == 0
    assert "Found 1 error and 2 warnings in 11 files" in capsys.readouterr().out


@pytest.mark.parametrize("block", [b for b in blocks("toml") if "[tool.dcplint" in b.text], ids=str)
def test_configurations_are_valid(block: Block, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(block.text, encoding="utf-8")
    config = find_config([tmp_path], Catalogue(r.rule for r in all_rules()))
    assert config.path is not None


def test_every_key_of_the_configuration_is_explained() -> None:
    assert [*keys()] == [*_KEYS]


def test_the_hooks_of_the_readme_exist() -> None:
    text = (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    hooks = {hook["id"] for hook in yaml.safe_load(text)}
    shown = (b.text for b in blocks("sh") if "hooks:" in b.text)
    used = {name for text in shown for name in re.findall(r"- id: (\S+)", text)}
    assert used and used <= hooks == {"dcplint", "dcplint-all"}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, anchor = target.partition("#")
        if re.match(r"[a-z]+:", path):
            continue
        linked = page.parent / path if path else page
        assert linked.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", linked.read_text(encoding="utf-8"), re.MULTILINE)
            slugs = {re.sub(r"[^\w -]", "", h).lower().replace(" ", "-") for h in headings}
            assert anchor in slugs, target


def test_every_package_has_its_place_in_the_architecture() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    described = set(re.findall(r"^\| `dcplint/(\w+)/` \|", text, re.MULTILINE))
    assert described == {path.parent.name for path in ROOT.glob("dcplint/*/__init__.py")}
