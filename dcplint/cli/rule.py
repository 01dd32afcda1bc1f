"""`dcplint rule`."""

from __future__ import annotations

import os

import click

from dcplint.cli import options, output


@click.command("rule")
@click.argument("rule", required=False, metavar="[CODE|NAME]")
@options.color
@options.verbose
def command(rule: str | None, color: str, verbose: bool) -> None:
    """Explain a rule by its code or name; without one, list all rules."""
    from dcplint.checks.base import all_rules
    from dcplint.errors import UserError
    from dcplint.findings.catalogue import Catalogue, UnknownRule
    from dcplint.report.explain import explain, listing

    view = output.view_for(color, os.environ, to_file=False, summary=True)
    rules = {registered.rule.code: registered for registered in all_rules()}
    if rule is None:
        output.print_lines(listing(rules.values(), view))
        return
    try:
        declared = Catalogue(r.rule for r in rules.values()).rule(rule)
    except UnknownRule as unknown:
        raise UserError(str(unknown)) from unknown
    output.print_lines(explain(rules[declared.code], view))
