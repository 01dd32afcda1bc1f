"""Lengths: what arithmetic on them computes, proved by enumeration."""
