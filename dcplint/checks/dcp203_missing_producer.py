"""A runner builds batch metadata without a contract field that its consumers read.

## What it flags
A record built from scratch with a contract field absent or None, on a path that can run with DCP
on, reaches a consumer that reads the field, and nothing fills it in on the way.

## Why it breaks
The consumer gets None where it needs this rank's lengths. Dummy and capture batches are the usual
place: the model crashes when graphs are captured, or captures a graph that reads the wrong tensor.

## Bad
```python
def make_dummy(n):
    return Batch(seq_lens=torch.ones(n), dcp_local_seq_lens=None)
```

## Good
```python
def make_dummy(n, dcp):
    batch = Batch(seq_lens=torch.ones(n), dcp_local_seq_lens=None)
    if dcp.size > 1:
        batch.dcp_local_seq_lens = localize(batch.seq_lens, dcp)
    return batch
```

## How it is confirmed
The runner's own function builds the batch; the field is None where the contract owes it.

## Known limits
Runners whose calls cannot be followed are not judged.
"""

from __future__ import annotations

from collections.abc import Iterator

from dcplint.checks.base import Context, Rule
from dcplint.checks.missing_field import missing_fields
from dcplint.findings.model import Finding, Severity

RULE = Rule(
    code="DCP203",
    name="missing-producer",
    summary="flags batch metadata built without a contract field that a consumer reads",
    severity=Severity.ERROR,
    since="0.1.0",
    probe="the runner's own function that builds the batch: is the field there?",
)


def check(context: Context) -> Iterator[Finding]:
    """Yield a finding for each place that builds metadata which lacks the field at a reader."""
    for missing in missing_fields(context):
        if not missing.rebuilt_from:
            yield RULE.finding(
                f"`{missing.origin.symbol}` leaves {missing.field.name} of {missing.record} None, "
                f"nothing fills it in on the way, and {missing.readers} read it under DCP",
                missing.location,
                symbol=missing.origin.symbol,
                evidence=missing.evidence,
            )
