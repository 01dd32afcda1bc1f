"""A suppression comment that nothing needs.

## What it flags
A rule named in a suppression comment although nothing it covers violates that rule, any more or
ever.

## Why it breaks
A suppression that outlives its finding is a trap: the next real fault on that line is born silent.

## Bad
```python
class MyImpl(AttentionImpl):
    supports_dcp = True  # dcplint: ignore[DCP101] merged by the layer
```

## Good
```python
class MyImpl(AttentionImpl):
    supports_dcp = True
```

## How it is confirmed
Nothing is run: the finding says that no finding was suppressed.

## Known limits
Rules that are off, for the run or for the file, say nothing about their suppressions. This rule
itself is silenced by `ignore` or `per-file-ignores`, never by a comment.
"""

from dcplint.checks.base import Rule
from dcplint.findings.model import Severity

RULE = Rule(
    code="DCP002",
    name="unused-suppression",
    summary="flags suppressions that nothing needs",
    severity=Severity.WARNING,
    since="0.1.0",
    probe="none: it is about comments",
    follows=False,
)
