from hypothesis import given
from hypothesis import strategies as st

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
    documents = Documents(max_documents=2, max_bytes=60, share=pool.share(trusted=True))
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
