import msgspec
from hypothesis import given
from hypothesis import strategies as st
from tests.server.http.scripted import snapshots

from lacuna_model.core.params import FillStats, InfillResult, SlotView, Snapshot
from lacuna_server.http.shapes.answer import Answer, Exchange, cut, final_lines
from lacuna_server.http.shapes.openai import TextRequest, completion


def canvas(*slots: tuple[str, str], fill: str | None = None) -> Snapshot:
    views = tuple(SlotView(text, state, 0.5) for text, state in slots)
    return Snapshot(1, ("".join(text for text, _ in slots) if fill is None else fill,), (views,))


def exchange(**fields: object) -> Exchange:
    return completion(msgspec.convert({"prompt": "x", "stream": True, **fields}, TextRequest), "model")


def streamed(asked: Exchange, snapshot: Snapshot) -> str:
    return "".join(chunk.choices[0].text for chunk in asked.chunks(snapshot))


@given(
    text=st.text("ab \n", max_size=30),
    stops=st.lists(st.sampled_from(["\n\n", "\n \n", "ab", "b\na", "\n"]), max_size=3),
)
def test_streamed_pieces_add_up_to_the_text_before_the_first_stop(text: str, stops: list[str]) -> None:
    asked = exchange(stop=stops)
    pieces = [streamed(asked, snapshot) for snapshot in snapshots(text)]
    (last,) = asked.last(Answer((cut(text, stops),)))
    assert "".join([*pieces, last.choices[0].text]) == cut(text, stops)


@given(text=st.text("ab \n", min_size=1, max_size=30), lines=st.integers(0, 5))
def test_streamed_pieces_never_exceed_the_text_that_a_deadline_keeps(text: str, lines: int) -> None:
    """A deadline keeps only complete lines. They must begin with the pieces that were already sent."""
    kept = "".join(text.splitlines(keepends=True)[:lines])
    asked, sent = exchange(), ""
    for snapshot in snapshots(text):
        if final_lines(snapshot).count("\n") < lines:
            sent += streamed(asked, snapshot)
    assert kept.startswith(sent) or not lines


def test_a_character_of_two_tokens_is_not_final_in_halves() -> None:
    halves = canvas(("a\n", "committed"), ("\ufffd", "committed"), ("\ufffd\nb", "committed"), fill="a\né\nb")
    assert final_lines(halves) == "a"


def test_the_finish_reason_tells_why_a_fill_ended() -> None:
    question = exchange(max_tokens=4, stop=("!",)).question
    short, full = FillStats(tokens=3), FillStats(tokens=4)
    assert Answer.of(question, InfillResult("ok", ("a",), short)).finish == "stop"
    assert Answer.of(question, InfillResult("ok", ("a",), full)).finish == "length"
    assert Answer.of(question, InfillResult("ok", ("a!b",), full)).finish == "stop"
    assert Answer.of(question, InfillResult("deadline", ("a",), short)).finish == "length"
