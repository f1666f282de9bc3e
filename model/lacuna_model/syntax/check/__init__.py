"""Checks whether fills add an error to a document.

The checks are parse trees, rules that the grammars lack, compilers, and a comparison with the original's errors. The
package may import ``lr``, ``text`` and ``languages``.
"""
