"""Work is counted by thread."""

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
