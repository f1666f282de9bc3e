"""The backend of fill-in-the-middle models: one causal prompt a gap, kept encoded, and drafts that a pass verifies.

``tracks`` reads runs of tokens into the arena, ``context`` keeps a document's prompt, ``drafts`` proposes what the
project would write, ``reading`` verifies it for the denoise loop, ``loading`` builds the model. The package imports
the network, the canvas and the prior, and nothing of the engine.
"""
