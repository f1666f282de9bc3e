"""The index of the documents that are being edited: what a key costs grows with what it changed, and not with the file.

A document is indexed by pieces. A piece is encoded once, and sorted into a block with others; a block stays as long as
most of it is in the document, and what is not is hidden. Only the pieces that were changed last are sorted at each key.
"""

from collections import OrderedDict
from collections.abc import Iterator, Sequence

import numpy as np

from lacuna_model.core.pieces import nearest_first
from lacuna_model.prior.index import IndexedDocuments, Segment, Tokens, token_type
from lacuna_model.prior.indexing import FileTokenizer

# Bytes that are encoded at once: some 20 ms. Of a document that has more, those nearest to the gaps come first.
BYTES_AT_ONCE = 1 << 15
# Tokens that are sorted anew at each key, at most: 1 ms.
MOST_RECENT = 8192
# Tokens of a block, at most: to sort them takes 10 ms.
MOST_SORTED = 1 << 16
MAX_DOCUMENTS = 8


class PiecewiseIndex:
    """The index of one document; ``texts`` are those between its gaps."""

    def __init__(self, tokenizer: FileTokenizer) -> None:
        self._tokenizer = tokenizer
        self._kind = token_type(tokenizer.vocab_size)
        self._blocks: list[IndexedDocuments[bytes]] = []
        self._recent: dict[bytes, Tokens] = {}

    def segments(self, texts: Sequence[bytes]) -> list[Segment]:
        """The segments of what is indexed so far, after one more part of what is not."""
        pieces = nearest_first(texts)
        self._take(pieces)
        there = frozenset(pieces)
        recent = Segment(IndexedDocuments.index(self._recent, self._kind))
        return [recent, *(Segment.of(block, _gone(block, there)) for block in self._blocks)]

    def read(self, texts: Sequence[bytes]) -> Iterator[None]:
        """Index the whole document, and pause after each part."""
        pieces = nearest_first(texts)
        while self._take(pieces):
            yield

    def _take(self, pieces: Sequence[bytes]) -> bool:
        """Forget what is not among some pieces, and index some that are new; returns whether there were any."""
        self._drop(frozenset(pieces))
        known = self._recent.keys() | {name for block in self._blocks for name in block.names}
        some, size = list[bytes](), 0
        for piece in pieces:
            if piece not in known and size < BYTES_AT_ONCE:
                some.append(piece)
                size += len(piece)
        encoded = (self._tokenizer.encode(piece.decode(errors="ignore")) for piece in some)
        self._recent |= {piece: np.array(ids, dtype=self._kind) for piece, ids in zip(some, encoded, strict=True)}
        if sum(map(len, self._recent.values())) > MOST_RECENT:
            self._sort_recent()
        return bool(some)

    def _drop(self, there: frozenset[bytes]) -> None:
        """Forget the pieces that are gone, and sort again those of a block that has lost most."""
        self._recent = {piece: tokens for piece, tokens in self._recent.items() if piece in there}
        for block in list(self._blocks):
            if 2 * len(_gone(block, there)) > len(block.names):
                self._blocks.remove(block)
                self._recent |= {name: tokens for name, tokens in block.tokens() if name in there}

    def _sort_recent(self) -> None:
        """Make a block of the pieces that were changed last, together with blocks that are no larger."""
        pieces = dict(self._recent)
        size = sum(map(len, pieces.values()))
        while self._blocks and len(self._blocks[-1].array.tokens) <= min(size, MOST_SORTED - size):
            pieces |= self._blocks.pop().tokens()
            size = sum(map(len, pieces.values()))
        self._blocks.append(IndexedDocuments.index(pieces, self._kind))
        self._recent = {}


class PiecewiseIndexes:
    """The indexes of the documents used last, by the keys of their contexts."""

    def __init__(self, tokenizer: FileTokenizer) -> None:
        self._tokenizer = tokenizer
        self._documents: OrderedDict[str, PiecewiseIndex] = OrderedDict()

    def of(self, key: str) -> PiecewiseIndex:
        """The index of a document."""
        found = self._documents.setdefault(key, PiecewiseIndex(self._tokenizer))
        self._documents.move_to_end(key)
        while len(self._documents) > MAX_DOCUMENTS:
            self._documents.popitem(last=False)
        return found


def _gone(block: IndexedDocuments[bytes], there: frozenset[bytes]) -> list[bytes]:
    return [name for name in block.names if name not in there]
