import pytest

from lacuna_model.core.errors import RequestError
from lacuna_model.core.window import WindowOptions
from lacuna_model.fim.loading import LoadedFim
from lacuna_model.sessions import DocumentSessions


def sessions(model: LoadedFim, documents: int) -> DocumentSessions:
    """Sessions whose budget is the memory of this many documents."""
    one = DocumentSessions(model, WindowOptions(), 1)
    with one.running("any"):
        return DocumentSessions(model, WindowOptions(), documents * one.num_bytes)


def use(kept: DocumentSessions, *keys: str) -> None:
    for key in keys:
        with kept.running(key):
            pass


def test_the_least_recently_used_document_is_dropped_first(model: LoadedFim) -> None:
    kept = sessions(model, 3)
    use(kept, "a", "b", "c", "a", "d")
    assert [key for key in "abcd" if key in kept] == ["a", "c", "d"]


def test_documents_that_are_being_filled_are_kept_whatever_the_budget(model: LoadedFim) -> None:
    kept = sessions(model, 1)
    with kept.running("a") as first:
        with kept.running("b"):
            use(kept, "c")
            assert "a" in kept
            assert "b" in kept
        assert "c" in kept  # the last one used
        assert "b" not in kept
        first.cache.reader.arena.reserve(5000)  # it grows during its fill
    assert "a" not in kept
    use(kept, "d")
    assert [key for key in "abcd" if key in kept] == ["d"]


def test_one_fill_of_a_document_at_a_time(either_model: LoadedFim) -> None:
    kept = sessions(either_model, 2)
    with kept.running("a"), pytest.raises(RequestError, match="under way"), kept.running("a"):
        pass
    use(kept, "a")
