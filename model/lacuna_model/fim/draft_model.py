"""A smaller model of the same tokens drafts for a larger one (speculative decoding, arXiv 2211.17192).

It reads the same prompts into keys and values of its own. A token that it drafts costs one of its passes, about a third
of a pass of the larger model; where the larger one would write the same, that saves a pass.
"""

from collections.abc import Sequence

import torch

from lacuna_model.decode.canvas import Key
from lacuna_model.fim.context import FimContext
from lacuna_model.fim.loading import LoadedFim
from lacuna_model.fim.tracks import Track, common_prefix


class DraftModel:
    """The drafts of one request by the model ``smaller``, whose ``context`` has the request's prompts.

    ``begin`` is the token between the prompt of a gap and its fill.
    """

    def __init__(self, smaller: LoadedFim, context: FimContext, begin: int) -> None:
        self._model = smaller
        self._context = context
        self._begin = begin
        self._tracks: dict[Key, Track] = {}

    def settle(self, fills: Sequence[Sequence[int]]) -> None:
        """Put the fills of the first gaps, as tokens, into the prompts of the later ones; empty: not filled yet."""
        self._context.settle(fills)

    def is_ready(self, gap: int) -> bool:
        """Whether it can draft for a gap; asked once a pass, since it catches up with what it did not read."""
        return self._context.catch_up(gap)

    @torch.inference_mode()
    def next_token(self, key: Key, written: Sequence[int]) -> tuple[int, float, int]:
        """The likeliest token after those ``written`` in a canvas.

        With it come its probability among the frequent tokens, and the number of rows that were read for it.
        """
        chain = self._context.chain(key[1])
        track = self._tracks.setdefault(key, self._context.reader.new())
        ids = [self._begin, *written]
        track.become(ids, sum(len(one.ids) for one in chain))
        track.forget_from(len(ids) - 1)  # the last token is read again, for its output
        read = self._context.reader.read([[*chain, track]])
        best, token = self._model.frequent_head(read[track][-1:])[0].softmax(-1).max(0)
        return int(token), float(best), sum(map(len, read.values()))


def can_draft(smaller: LoadedFim, larger: LoadedFim) -> bool:
    """Whether both models have the same tokens."""
    one, other = smaller.tokenizer.vocabulary, larger.tokenizer.vocabulary
    common = common_prefix(one.tokens, other.tokens)  # padding may follow
    return one.fim == other.fim and common >= min(len(one.tokens), len(other.tokens)) and one.merges == other.merges
