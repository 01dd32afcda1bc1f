"""Seconds by stage and by rule, in one process."""

from __future__ import annotations

import time
from pathlib import Path

from dcplint.checks.base import Context, all_rules
from dcplint.findings.policy import Policy
from dcplint.run import open_trees
from dcplint.run_options import RunOptions


def profile(tree: Path) -> None:
    """Print how long opening the tree and each rule takes; a rule pays for what it asks first."""
    codes = frozenset(registered.rule.code for registered in all_rules())
    started = time.perf_counter()
    trees = open_trees(RunOptions(paths=(tree,), policy=Policy(codes)))
    print(f"{'index, parse, link':28}{time.perf_counter() - started:8.2f}")
    for opened in trees:
        for engine, program in opened.programs:
            context = Context(program, engine.contract)
            for registered in all_rules():
                if registered.check is None:
                    continue
                started = time.perf_counter()
                count = sum(1 for _ in registered.check(context))
                seconds = time.perf_counter() - started
                print(f"{registered.rule.code} {registered.rule.name:20}{seconds:8.2f}{count:6}")
