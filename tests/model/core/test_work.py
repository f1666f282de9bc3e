"""Work is counted by thread, and a cache does not change it."""

from threading import Thread

from lacuna_model.core import work


def test_a_mark_is_reached_by_so_much_work_of_the_same_thread() -> None:
    mark = work.mark(1e-6)
    other = Thread(target=work.spend, args=(10**9,))
    other.start()
    other.join()
    assert not work.reached(mark)
    work.spend(999)
    assert not work.reached(mark)
    work.spend(1)
    assert work.reached(mark)


def test_a_result_from_a_cache_counts_the_work_that_it_took() -> None:
    calls = []

    @work.cached(maxsize=2)
    def doubled(number: int) -> int:
        calls.append(number)
        work.spend(number)
        return 2 * number

    for _ in range(3):
        before = work.spent()
        assert doubled(700) == 1400
        assert work.spent() - before == 700
    assert calls == [700]
