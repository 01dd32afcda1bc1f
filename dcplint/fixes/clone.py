"""Cloning a tensor before it is stored into."""

from __future__ import annotations

import libcst as cst

from dcplint.findings.changes import CloneValue
from dcplint.fixes.tree import expression_at, replaced


def clone_value(change: CloneValue, module: cst.Module) -> cst.Module | None:
    """`module` with `.clone()` behind the expression; None where it is not there."""
    value = expression_at(module, change.at)
    if not isinstance(value, (cst.Name, cst.Attribute, cst.Subscript, cst.Call)):
        return None
    return replaced(module, value, cst.Call(cst.Attribute(value, cst.Name("clone"))))
