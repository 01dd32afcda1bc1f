"""From the changes that rules propose to edits, and from edits to files. The user of LibCST."""
