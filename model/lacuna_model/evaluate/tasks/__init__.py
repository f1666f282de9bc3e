"""Benchmark problems whose fills are run against their tests, and the engines that fill them."""
