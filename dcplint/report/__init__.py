"""Output: one file per format, each a function from a `Report` to text."""
