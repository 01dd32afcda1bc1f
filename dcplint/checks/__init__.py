"""The rules: one file each, found by their file name."""
