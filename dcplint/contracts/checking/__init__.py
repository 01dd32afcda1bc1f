"""Comparing a pack with an engine release: one module for each kind of statement."""
