"""The constraint that reads each token, and proves a fill at its line ends and at its end.

What stands before the cursor of a fill can be read or not; a proof is a text after which the whole text is valid. The
package may import ``broken``, ``check``, ``lr``, ``region``, ``text``, ``languages`` and ``core``.
"""
