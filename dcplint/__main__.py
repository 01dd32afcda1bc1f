"""`python -m dcplint`, the same as the command."""

from __future__ import annotations

from dcplint.cli.main import main

main()
