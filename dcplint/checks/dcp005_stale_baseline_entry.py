"""A baseline entry whose finding is gone.

## What it flags
A line of the baseline in force that accepts a finding which is no longer there: it was fixed, its
code was removed, or a comment in the code suppresses it.

## Why it breaks
A stale entry waits for the fault to come back, and then accepts it.

## Bad
```json
{"code": "DCP101", "path": "gone.py", "symbol": "GoneImpl", "fingerprint": "0123456789abcdef"}
```

## Good
Write the baseline anew: `dcplint baseline`.

## How it is confirmed
Nothing is run: the finding says that no finding has the entry's fingerprint.

## Known limits
Only entries of files that the run is about, and of rules that are on, are judged. A run against
another engine release finds other findings, so accept and check against the same one.
"""

from dcplint.checks.base import Rule
from dcplint.findings.model import Severity

RULE = Rule(
    code="DCP005",
    name="stale-baseline-entry",
    summary="flags baseline entries whose finding is gone",
    severity=Severity.NOTE,
    since="0.1.0",
    probe="none: it is about a file of dcplint's own",
    follows=False,
)
