"""What measures Lacuna: ``python -m tests.benchmarks NAME``, in the root of a clone. The figures are in README.md.

It may import every package, and none imports it.
"""
