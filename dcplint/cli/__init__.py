"""The command line: one click command per file."""
