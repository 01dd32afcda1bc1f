"""dcplint: finds decode-context-parallelism bugs in inference engines before merge."""

__version__ = "0.1.0"
