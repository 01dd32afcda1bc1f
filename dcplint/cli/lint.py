"""A run as the configuration wants it, for commands that do more than show its report."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from dcplint.errors import UserError

if TYPE_CHECKING:
    from dcplint.config import Config
    from dcplint.findings.catalogue import Catalogue
    from dcplint.report.model import Report


@cache
def rule_catalogue() -> Catalogue:
    """Every rule there is."""
    from dcplint.checks.base import all_rules
    from dcplint.findings.catalogue import Catalogue

    return Catalogue(registered.rule for registered in all_rules())


def configuration(paths: tuple[Path, ...]) -> Config:
    """What is configured for `paths`, by default the working directory. Raises UserError."""
    from dcplint.config import find_config

    return find_config(paths or (Path(),), rule_catalogue())


def lint(
    paths: tuple[Path, ...],
    engine: str | None,
    engine_path: Path | None,
    packs: tuple[Path, ...],
    baseline: Path | None = None,
    *,
    select: tuple[str, ...] = (),
) -> Report:
    """The report on `paths`, by default the working directory. The baseline is never configured."""
    from dcplint.config import policy
    from dcplint.contracts.spec import parse_engine
    from dcplint.findings.catalogue import UnknownRule
    from dcplint.run import run_checks
    from dcplint.run_options import RunOptions

    paths = paths or (Path(),)
    config = configuration(paths)
    try:
        decided = policy(config, rule_catalogue(), select=select or None)
        wanted = parse_engine(engine) if engine else config.engine
    except (UnknownRule, ValueError) as error:
        raise UserError(str(error)) from error
    return run_checks(
        RunOptions(
            paths=paths,
            policy=decided,
            config_path=config.path,
            exclude=config.exclude,
            engine=wanted,
            engine_path=engine_path or config.engine_path,
            packs=(*config.packs, *packs),
            baseline=baseline,
        )
    )
