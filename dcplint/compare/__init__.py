"""Two trees side by side: what a change does to capabilities and findings."""
