"""The backend of fill-in-the-middle models: one causal prompt per gap, kept encoded, and drafts that a pass verifies.

``tracks`` reads runs of tokens into the arena, ``context`` keeps a document's prompt, ``drafts`` proposes continuations
from the project or a smaller model (``draft_model``), ``reading`` verifies them for the loop, and ``loading``
builds the model.
"""
