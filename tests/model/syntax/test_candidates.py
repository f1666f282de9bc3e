"""The queue of one gap: what no parse need look at takes a bounded time."""

import numpy as np

from lacuna_model.constraint import GapView
from lacuna_model.params import Region
from lacuna_model.syntax.candidates import MAX_REFUSED, Candidates, GapText
from lacuna_model.syntax.draft import lay_out
from lacuna_model.syntax.region_rules import RegionRules
from lacuna_model.syntax.vocabulary import vocabulary_of

from .conftest import SmallTokens


class Refusing(RegionRules):
    """Rules that nothing keeps."""

    def __init__(self) -> None:
        super().__init__(Region(0, 0), b"")
        self.asked = 0

    def accepts(self, fill: bytes) -> bool:
        """Never."""
        self.asked += 1
        return False


def view(tokens: SmallTokens, texts: list[list[bytes]]) -> GapView:
    """Open slots with these tokens as their candidates, best first."""
    known = {tokens.token_bytes(token): token for token in range(tokens.vocab_size)}
    ids = np.array([[known[text] for text in slot] for slot in texts], dtype=np.int64)
    logp = np.tile(np.linspace(-0.1, -3.0, ids.shape[1], dtype=np.float32), (len(ids), 1))
    return GapView((), (None,) * len(ids), ids, logp, budget=0)


def queue_of(tokens: SmallTokens, seen: GapView, rules: RegionRules) -> Candidates:
    queue = Candidates(seen, GapText(vocabulary_of(tokens), rules))
    draft = lay_out(seen, {}, tokens.eog_id)
    assert draft is not None
    queue.add(draft, base=0.0)
    return queue


def test_a_search_among_what_is_refused_ends(tokens: SmallTokens) -> None:
    rules = Refusing()
    letters = [bytes([letter]) for letter in b"abcdefgh"]
    assert queue_of(tokens, view(tokens, [letters] * 12), rules).pop() is None
    assert 0 < rules.asked <= MAX_REFUSED


def test_half_a_character_is_changed_where_it_stands(tokens: SmallTokens) -> None:
    seen = view(tokens, [[b"\x80", b"a"], *[[b"b", b"c"]] * 11])
    queue = queue_of(tokens, seen, RegionRules(Region(0, 0), b""))
    found = [queue.pop() for _ in range(4)]
    assert b"a" + b"b" * 11 in [fill.text for fill in found if fill is not None]


def test_the_cheaper_way_to_a_fill_counts(tokens: SmallTokens) -> None:
    known = view(tokens, [[b"a", b"b"]] * 4)
    ends = np.where(known.ids == known.ids[0, 1], tokens.eog_id, known.ids)
    # The draft may end at once, which its doubt makes costly; what is fixed needs no completion, which is cheap.
    queue = queue_of(tokens, GapView((), (None,) * 4, ends, known.logp - 2, budget=0), RegionRules(Region(0, 0), b""))
    first = queue.pop()
    assert first is not None
    assert first.text == b""


def test_tokens_of_every_rank_are_tried_where_a_fault_is(tokens: SmallTokens) -> None:
    queue = queue_of(tokens, view(tokens, [[b"a", b"b", b"c"]] * 12), RegionRules(Region(0, 0), b""))
    assert queue.pop() is not None
    queue.blame(0)
    tried = {fill.text[:1] for fill in iter(queue.pop, None)}
    assert tried >= {b"a", b"b", b"c"}
