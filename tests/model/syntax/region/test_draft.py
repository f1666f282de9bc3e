"""A gap's slots as the search sees them after commits and remasks that the canvas has not made yet."""

from lacuna_model.core.constraint import Commit, GapView, Remask
from lacuna_model.core.context import Gap
from lacuna_model.decode.canvas import Canvas
from lacuna_model.syntax.region.draft import changed

CHANGES = (
    Commit(0, 0, 5),
    Commit(0, 1, 6, tentative=True),
    Commit(0, 2, 7, tentative=True),
    Commit(0, 4, 8, tentative=True),
    Remask(0, 1),
    Commit(0, 1, 9),
)


def test_a_view_changes_as_the_canvas_does() -> None:
    canvas = Canvas(Gap(0), 8, 8)
    canvas.open_block()
    view = canvas.view(None)
    for one in CHANGES:
        view = changed(view, [one])
        if isinstance(one, Commit):
            canvas.commit(one.slot, one.token, 2, tentative=one.tentative)
        else:
            canvas.remask(one.slot)
        assert view.slots == tuple(canvas.slots)
    assert view == changed(GapView((), (None,) * 8), CHANGES)
    assert view.slots == (5, 9, None, None, 8, None, None, None)
    assert not view.tentative
