"""A run as the configuration wants it, for commands that do more than show its report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dcplint.errors import UserError

if TYPE_CHECKING:
    from dcplint.report.model import Report


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
    from dcplint.checks.base import all_rules
    from dcplint.config import find_config, policy
    from dcplint.contracts.spec import parse_engine
    from dcplint.findings.catalogue import Catalogue, UnknownRule
    from dcplint.run import run_checks
    from dcplint.run_options import RunOptions

    paths = paths or (Path(),)
    catalogue = Catalogue(registered.rule for registered in all_rules())
    config = find_config(paths, catalogue)
    try:
        decided = policy(config, catalogue, select=select or None)
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
