"""Denoise anywhere, prove left to right: the constraint that reads each token and proves at line ends and at the end.

What stands before the cursor of a fill can be read or not; a proof is a text after which the whole text is valid. The
package may import ``broken``, ``check``, ``lr``, ``region``, ``text``, ``languages`` and ``core``.
"""
