"""The linked program of a directory, as a rule sees it."""

from pathlib import Path

from dcplint.checks.base import Context
from dcplint.contracts.spec import parse_engine
from dcplint.findings.policy import Policy
from dcplint.run_options import RunOptions
from dcplint.trees import open_trees


def contexts(directory: Path, engine: str, source: Path | None = None) -> list[Context]:
    """One context per tree and engine. source: where the engine's own code lies."""
    policy = Policy(frozenset())
    options = RunOptions((directory,), policy, engine=parse_engine(engine), engine_path=source)
    return [
        Context(program, engine.contract)
        for tree in open_trees(options)
        for engine, program in tree.programs
    ]
