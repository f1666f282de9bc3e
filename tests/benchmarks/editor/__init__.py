"""Measures the real language server with the real engine: latencies, typing, and edits that follow an edit.

It types with an LSP client (``typist``), measures latencies (``latency``) and replays whole files (``replay``).
"""
