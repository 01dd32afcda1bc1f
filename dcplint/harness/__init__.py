"""The runtime harness: runs a backend under DCP and says confirmed, refuted or inconclusive."""
