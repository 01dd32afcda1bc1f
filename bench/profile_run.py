"""Processor seconds by stage and by rule, in one process."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dcplint import trees
from dcplint.checks.base import Context, all_rules
from dcplint.contracts.packs import find_packs
from dcplint.findings.policy import Policy
from dcplint.program import index
from dcplint.run_options import RunOptions


def profile(tree: Path) -> None:
    """Print how long each stage and each rule takes; a rule pays for what it asks first."""
    spent: dict[str, float] = {}
    _timed(spent, "find files", index, "discover")
    _timed(spent, "scan bytes", trees, "build_index")
    _timed(spent, "parse and link", trees, "build_program")
    started = time.process_time()
    rules = all_rules()
    _say("import rules", time.process_time() - started)
    started = time.process_time()
    packs = find_packs(())
    for engine in packs:
        packs[engine]
    _say("read packs", time.process_time() - started)
    checked = trees.open_trees(RunOptions(paths=(tree,), policy=Policy(frozenset())))
    spent["scan bytes"] -= spent["find files"]
    for stage, seconds in spent.items():
        _say(stage, seconds)
    for opened in checked:
        for engine_, program in opened.programs:
            context = Context(program, engine_.contract)
            for registered in rules:
                if registered.check is None:
                    continue
                started = time.process_time()
                count = sum(1 for _ in registered.check(context))
                name = f"{registered.rule.code} {registered.rule.name}"
                _say(name, time.process_time() - started, f"{count:6}")


def _timed(spent: dict[str, float], stage: str, module: Any, name: str) -> None:
    """Have the time that a function of a module takes added up under `stage`."""
    function: Callable[..., Any] = getattr(module, name)

    def timed(*args: Any, **options: Any) -> Any:
        started = time.process_time()
        try:
            return function(*args, **options)
        finally:
            spent[stage] = spent.get(stage, 0.0) + time.process_time() - started

    setattr(module, name, timed)


def _say(what: str, seconds: float, more: str = "") -> None:
    print(f"{what:34}{seconds:8.2f}{more}")
