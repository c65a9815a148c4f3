"""Fuzzing of the path from bytes to rows: `python -m fuzz --help`.

Two engines share the laws of `laws.py`: atheris mutates files guided by coverage, hypothesis makes traces out of the
attribute names that the dialects read. Neither is needed to use the library.
"""
