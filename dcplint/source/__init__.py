"""From paths to text: discovery, reading, the byte prefilter and parsing. Knows no rule."""
