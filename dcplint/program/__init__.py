"""Linking facts into a program: names, hierarchies, attributes and where each comes from."""
