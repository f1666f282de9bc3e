from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from lacuna_model.prior.index import Index, IndexedDocuments
from lacuna_model.prior.matching import longest_match

NAMES = st.sampled_from("abcde")
TOKENS = st.lists(st.integers(0, 2), max_size=8)


class Edits(RuleBasedStateMachine):
    """After any sequence of edits an index gives the answers of an index built from scratch."""

    def __init__(self) -> None:
        super().__init__()
        self.index = Index.for_vocabulary(100)
        self.files: dict[str, list[int]] = {}

    @rule(name=NAMES, tokens=TOKENS)
    def update(self, name: str, tokens: list[int]) -> None:
        self.index.update(name, tokens)
        self.files[name] = tokens

    @rule(name=NAMES)
    def remove(self, name: str) -> None:
        self.index.remove(name)
        self.files.pop(name, None)

    @rule()
    def replace_all(self) -> None:
        self.index.replace_all(IndexedDocuments.index(self.files, self.index.kind))

    @invariant()
    def answers_as_if_built_afresh(self) -> None:
        for without in ("", "a"):
            fresh = Index.for_vocabulary(100)
            fresh.replace_all(IndexedDocuments.index({n: t for n, t in self.files.items() if n != without}, fresh.kind))
            for context in ([0], [1, 2], [2, 0, 1], [1, 1, 0, 2]):
                got, wanted = (
                    longest_match(each.segments(name), context) for each, name in ((self.index, without), (fresh, ""))
                )
                assert (got is None) == (wanted is None)
                if got is not None and wanted is not None:
                    assert got.length == wanted.length
                    assert Counter(got.tokens().tolist()) == Counter(wanted.tokens().tolist())


Edits.TestCase.settings = settings(max_examples=20, stateful_step_count=10, deadline=None)
TestEdits = Edits.TestCase


def test_the_segments_that_a_reader_holds_do_not_change() -> None:
    index = Index.for_vocabulary(100)
    index.update("a", [1, 2])
    before = index.segments()
    index.update("a", [1, 3])
    old, new = longest_match(before, [1]), longest_match(index.segments(), [1])
    assert old is not None
    assert new is not None
    assert (old.tokens().tolist(), new.tokens().tolist()) == ([2], [3])
