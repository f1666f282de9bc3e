from tests.benchmarks.engine.speed import Context, measure, rows


def words(text: str) -> list[int]:
    return [0] * len(text.split())


class Logging:
    """A fake engine that logs its calls."""

    def __init__(self, name: str, log: list[tuple[str, str, str, int]]) -> None:
        self.name = name
        self._log = log

    def complete(self, context: Context, typed: str, num_tokens: int) -> int:
        self._log.append((self.name, context.before, typed, num_tokens))
        return num_tokens

    def rest(self, context: Context) -> None:
        self._log.append((self.name, context.before, "", 0))


def test_engines_take_turns_on_one_text_if_warm_and_on_new_texts_if_cold() -> None:
    log: list[tuple[str, str, str, int]] = []
    engines = [Logging("lacuna", log), Logging("b", log)]
    found = list(measure(engines, words, lengths=(4,), warm=3, cold=2))
    assert [name[-1] for name, *_ in log] == [*"ab", *"aabb", *"ab" * (3 + 2)]
    warm, cold = [entry for entry in log[2:12] if entry[3]], log[12:]
    assert [name for name, *_, tokens in log if not tokens] == ["lacuna", "b"]  # both rest when the context is read
    assert len({before for _, before, _, _ in warm}) == 1
    assert [len(typed) for name, _, typed, _ in warm if name == "b"] == [0, 1, 2, 3]
    assert len({before for _, before, _, _ in cold}) == 2
    assert [(row["context"], row["tokens"], row["runs"]) for row in rows(found)] == [("warm", 4, 3), ("cold", 4, 2)]
