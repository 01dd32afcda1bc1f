"""The fix for an argument that the DCP branch's kernel call leaves out."""

from __future__ import annotations

import ast

from dcplint.checks.base import Context
from dcplint.facts.expressions import dotted_name
from dcplint.facts.positions import position
from dcplint.findings.changes import PassArgument
from dcplint.findings.model import Applicability, Fix
from dcplint.flow.functions import Function


def pass_on(
    context: Context, function: Function, call: ast.Call, name: str, value: ast.expr
) -> Fix | None:
    """Pass the attribute of the impl that the sibling passes.

    None where it is a variable, which need not mean the same here, and for what the pack does not
    say is the same for every shard: a window or a slope depends on where a token is, a sink counts
    once.
    """
    dotted = dotted_name(value) or ""
    terms = context.contract.pack.terms
    per_shard = {term.name for term in terms if term.kind == "semantics" and term.per_shard}
    if name not in per_shard or not dotted.startswith("self.") or not function.is_method:
        return None
    program, module, node = context.program, function.module, function.node
    scope = program.location(module, (node.lineno, 0, node.end_lineno or node.lineno, 0))
    change = PassArgument(scope, program.location(module, position(call)), name, dotted)
    return Fix(f"pass `{name}={dotted}`", Applicability.UNSAFE, change)
