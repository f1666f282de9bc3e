"""The canvas side of a request: the adapted weights read all open blocks at once, each slot with both of its sides."""

from collections.abc import Sequence

import torch
from torch import Tensor

from lacuna_model.base_side import BaseSide
from lacuna_model.canvas import Canvas
from lacuna_model.kv_cache import ContextCache
from lacuna_model.loader import LoadedModel


class CanvasSide:
    """Passes over the canvases of a request, in the arena's rows behind the context and the finished blocks.

    A pass has the rows [anchor, slot 0, .. slot B-1] of every gap, unmasked: they see all the context, the finished
    blocks and each other. With ``shift`` the output of a row predicts the next slot, so the anchor, the last token in
    front of the block, predicts the first.
    """

    def __init__(self, model: LoadedModel, cache: ContextCache, base_side: BaseSide) -> None:
        self._canvas = model.canvas
        self._mask_embedding = model.mask_embedding
        self._cache = cache
        self._base_side = base_side

    def draft(self, opened: Sequence[Canvas]) -> list[Tensor]:
        """Logits [B, V] of every open canvas, from one pass over all of them."""
        model = self._canvas
        shift = model.config.shift
        device = self._mask_embedding.device
        ids: list[int] = []
        positions: list[int] = []
        masked: list[bool] = []
        heads: list[int] = []
        for canvas in opened:
            first = len(ids)
            if shift:
                ids.append(self._base_side.anchor(canvas))
                masked.append(False)
            ids += [0 if token is None else token for token in canvas.slots]
            masked += [token is None for token in canvas.slots]
            positions += range(canvas.position - shift, canvas.position + len(canvas.slots))
            heads += range(first, first + len(canvas.slots))
        x = model.embed(torch.tensor([ids], device=device))
        x[0, torch.tensor(masked, device=device)] = self._mask_embedding
        arena = self._cache.arena
        self._base_side.make_room(len(ids))
        arena.tail = self._base_side.canvas_start
        arena.reserve(arena.tail + len(ids))
        mask = self._apart(opened, arena.tail, len(ids)) if any(canvas.candidate for canvas in opened) else None
        hidden = model.hidden(x, torch.tensor(positions, device=device), arena, mask)
        logits = model.head(hidden[0, heads])
        return list(logits.split_with_sizes([len(canvas.slots) for canvas in opened]))

    def _apart(self, opened: Sequence[Canvas], tail: int, count: int) -> Tensor:
        """What the rows of a pass over several candidates see [R, K]: the context, and what is their candidate's."""
        size = [len(canvas.slots) + self._canvas.config.shift for canvas in opened]
        owners = torch.tensor([canvas.candidate for canvas, n in zip(opened, size, strict=True) for _ in range(n)])
        mask = torch.zeros((count, tail + count), dtype=torch.bool)
        mask[:, : self._cache.length] = True
        for candidate in {canvas.candidate for canvas in opened}:
            mask[:, self._base_side.finished_rows(candidate)] = (owners == candidate)[:, None]
        mask[:, tail:] = owners[:, None] == owners[None]
        return mask.to(self._mask_embedding.device)
