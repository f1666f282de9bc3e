import torch

from lacuna_model.rows import Rows


def test_what_was_read_stays_whatever_is_made_of_its_rows() -> None:
    read = torch.zeros((3, 4))
    rows = Rows(read)
    rows.own(1)[2] = 5.0
    rows.own(1)[3] = 7.0
    rows[2] = torch.ones(4)
    assert rows[0].tolist() == [0, 0, 0, 0]
    assert rows[1].tolist() == [0, 0, 5, 7]
    assert rows[2].tolist() == [1, 1, 1, 1]
    assert set(rows.changed) == {1, 2}
    assert not read.any()
