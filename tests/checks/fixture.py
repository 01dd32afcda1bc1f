"""A fixture: a small backend, the release it is judged against, and what is expected of it."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import dcplint
from dcplint.checks.base import all_rules
from dcplint.contracts.spec import parse_engine
from dcplint.data import data_dir
from dcplint.findings.model import Finding, Severity
from dcplint.findings.policy import Policy
from dcplint.report.model import Report
from dcplint.run import run_checks
from dcplint.run_options import RunOptions

FIXTURES = data_dir("fixtures")
SOURCE = Path(dcplint.__file__).parent
EVERY_RULE = Policy(frozenset(r.rule.code for r in all_rules() if r.rule.default))
SEVERITY = {r.rule.code: r.rule.severity for r in all_rules()}

CODED = tuple(r for r in all_rules() if r.check is not None)

_HEADER = re.compile(r"# (engine|file): (.+)")
_EXPECT = re.compile(r"# expect: (.+)$")


@dataclass(frozen=True, order=True)
class Expected:
    """`# expect: DCP101 error` on `line`. Without a severity it is the rule's own."""

    line: int
    code: str
    severity: str


@dataclass(frozen=True)
class Fixture:
    """`# engine: vllm==0.29.0` on its first line; `# file: vllm/x.py` where its place matters."""

    path: Path

    @property
    def rule(self) -> str:
        return self.path.parent.name.partition("_")[0].upper()

    @property
    def is_bad(self) -> bool:
        return self.path.name.startswith("bad_")

    @property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @property
    def engine(self) -> str:
        return self._headers()["engine"]

    @property
    def place(self) -> str:
        return self._headers().get("file", self.path.name)

    def _headers(self) -> dict[str, str]:
        found = map(_HEADER.fullmatch, self.text.splitlines()[:2])
        return {match[1]: match[2] for match in found if match}

    @property
    def expected(self) -> list[Expected]:
        return sorted(
            Expected(number, code, severity or SEVERITY[code].value)
            for number, line in enumerate(self.text.splitlines(), 1)
            if (match := _EXPECT.search(line))
            for code, _, severity in (entry.strip().partition(" ") for entry in match[1].split(","))
        )

    def lint(self, directory: Path) -> Report:
        """The report on a tree that holds this file alone."""
        return lint({self.place: self.text}, directory, self.engine)


def lint(
    files: dict[str, str],
    directory: Path,
    engine: str,
    codes: frozenset[str] = EVERY_RULE.codes,
) -> Report:
    """The report on a tree of `files`. Packages of the engine get their `__init__.py`."""
    package = engine.partition("==")[0]
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        if name.startswith(f"{package}/"):
            for parent in path.relative_to(directory).parents[:-1]:
                (directory / parent / "__init__.py").touch()
    # The one engine that is always at hand, source and all: the harness contract.
    source = SOURCE if package == "dcplint" else None
    return run_checks(
        RunOptions((directory,), Policy(codes), engine=parse_engine(engine), engine_path=source)
    )


def found(report: Report) -> list[Expected]:
    """What a report says, in the form of what is expected."""
    return sorted(map(_as_expected, report.findings))


def _as_expected(finding: Finding) -> Expected:
    return Expected(finding.location.line, finding.code, Severity(finding.severity).value)


@cache
def fixtures() -> tuple[Fixture, ...]:
    """Every fixture that the linter reads, by rule and name."""
    return tuple(Fixture(path) for path in sorted(FIXTURES.glob("dcp*_*/*.py")))
