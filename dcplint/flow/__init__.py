"""Following values through functions and calls: where a contract field comes from, and when."""
