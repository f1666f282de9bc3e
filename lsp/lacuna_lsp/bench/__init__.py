"""``lacuna bench lsp``: times from a keystroke to the answer, through the real language server and the real engine.

It types with an LSP client (``typist``), measures latencies (``latency``) and replays whole files (``replay``). It may
import every package.
"""
