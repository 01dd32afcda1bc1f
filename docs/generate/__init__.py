"""The pages, tables and the picture that are made from the code, so that they can't drift.

`python -m docs.generate` writes them all; the tests fail where one is not up to date.
"""
