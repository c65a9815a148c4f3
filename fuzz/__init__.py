"""Fuzzing of the path from bytes to rows: `python -m fuzz --help`.

Three engines share the laws of `laws.py`: atheris changes files guided by coverage, one of our own changes more of them
blindly, and hypothesis makes traces out of the attribute names that the dialects read. None is needed to use the
library.
"""
