"""Lacuna's language server: it connects an editor, over LSP, with the service that fills gaps.

Each client gets its own session. The packages here may import ``lacuna_server`` and ``lacuna_model``, but load no
torch.
"""
