import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lacuna_server.wire.config import ServerConfig
from lacuna_server.wire.documents import Documents, Pool
from lacuna_server.wire.protocol import Change, Edit, Open, ServiceError


def take_all(pool: Pool, *, trusted: bool = False) -> int:
    """Take one byte after the other until the pool refuses. Returns the number of bytes."""
    share = pool.share(trusted=trusted)
    try:
        while True:
            share.take(1)
    except ServiceError:
        return share.held


def test_clients_without_the_token_leave_half_to_clients_with_it() -> None:
    pool = Pool(1000)
    for _ in range(100):
        take_all(pool)
    assert pool.held <= 500
    assert take_all(pool, trusted=True) >= 250


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(-500, 500)), max_size=100))
def test_the_pool_is_never_overdrawn(steps: list[tuple[int, int]]) -> None:
    pool = Pool(1000)
    shares = [pool.share(trusted=number % 2 == 0) for number in range(10)]
    for which, change in steps:
        share = shares[which]
        before = pool.held
        try:
            share.take(max(change, -share.held))
        except ServiceError:
            assert pool.held == before
        assert pool.held == sum(one.held for one in shares) <= pool.size
    for share in shares:
        share.give_back()
    assert pool.held == 0


edits = st.tuples(st.integers(0, 40), st.integers(0, 40), st.text(max_size=30))


@given(st.lists(st.one_of(st.tuples(st.sampled_from("abc"), st.text(max_size=40)), edits, st.sampled_from("abc"))))
def test_documents_give_back_the_memory_that_they_took(steps: list[object]) -> None:
    pool = Pool(8000)
    documents = Documents(ServerConfig(max_documents=2, max_document_bytes=60), pool.share(trusted=True))
    for version, step in enumerate(steps, 1):
        try:
            match step:
                case (str(uri), str(text)):
                    documents.open(Open(uri, text, version))
                case (int(start), int(end), str(text)):
                    documents.change(Change("a", version, (Edit(start, end, text), Edit(0, 0, text))))
                case str(uri):
                    documents.close(uri)
        except ServiceError:
            pass
        assert (pool.held > 0) == (len(documents) > 0)
    for uri in "abc":
        documents.close(uri)
    assert pool.held == 0


URI = "file:///a.py"


def documents(text: str = "größe = 1\n", version: int = 1) -> Documents:
    opened = Documents(ServerConfig(max_documents=2, max_document_bytes=40), Pool(sys.maxsize).share())
    opened.open(Open(URI, text, version, "/a.py", "python"))
    return opened


EDITS = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20), st.text(max_size=3)), max_size=4)


@given(st.text(max_size=9), EDITS)
def test_any_edits_have_the_same_effect_as_on_a_string(text: str, edits: list[tuple[int, int, str]]) -> None:
    opened = documents(text)
    messages = []
    for at, size, new in edits:
        start, end = min(at, len(text)), min(at + size, len(text))
        messages.append(Edit(len(text[:start].encode()), len(text[:end].encode()), new))
        text = text[:start] + new + text[end:]
    if len(text.encode()) <= 40:
        opened.change(Change(URI, 2, tuple(messages)))
        assert opened.get(URI, 2).text.decode() == text


@pytest.mark.parametrize(
    ("version", "edit", "code"),
    [
        (2, Edit(0, 99, ""), "bad_request"),
        (2, Edit(-1, 0, ""), "bad_request"),
        (2, Edit(4, 2, ""), "bad_request"),
        (2, Edit(3, 3, "x"), "bad_request"),
        (2, Edit(0, 3, ""), "bad_request"),
        (2, Edit(0, 0, "x" * 40), "too_large"),
        (1, Edit(0, 0, ""), "wrong_version"),
    ],
)
def test_a_change_that_cannot_be_applied_is_refused(version: int, edit: Edit, code: str) -> None:
    opened = documents()
    with pytest.raises(ServiceError) as refused:
        opened.change(Change(URI, version, (Edit(0, 0, "x"), Edit(0, 1, ""), edit)))
    assert refused.value.code == code
    assert opened.get(URI, 1).text.decode() == "größe = 1\n"
