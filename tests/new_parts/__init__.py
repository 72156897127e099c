"""A package of somebody else's, with one new part of each kind. `tests/test_new_parts.py` copies it and adds its parts.

Each file is what `docs/architecture.md` says that such a part takes, and imports nothing from its neighbours.
"""
