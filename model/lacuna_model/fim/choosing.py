"""Scores given texts as the continuation of one prompt: the prompt is read once, all texts in one further pass."""

from collections.abc import Sequence

import torch

from lacuna_model.core.context import finished
from lacuna_model.fim.loading import LoadedFim


@torch.inference_mode()
def log_probabilities(model: LoadedFim, prompt: Sequence[int], texts: Sequence[Sequence[int]]) -> list[float]:
    """Returns the log-probability (nats) of the tokens of each text after a prompt of at least one token."""
    reader = model.tracks()
    head = reader.new()
    head.become(prompt[:-1], 0)
    while head.unread:
        finished(model.pieces.reading(reader, [[head]]))
    tracks = []
    for text in texts:
        track = reader.new()
        track.become([prompt[-1], *text], len(prompt) - 1)
        tracks.append(track)
    hidden = reader.read([[head, track] for track in tracks])
    found = []
    for track, text in zip(tracks, texts, strict=True):
        rows = reader.logits(hidden[track][:-1]).log_softmax(-1)
        found.append(float(rows[torch.arange(len(text)), torch.tensor(list(text))].sum()) if text else 0.0)
    return found
