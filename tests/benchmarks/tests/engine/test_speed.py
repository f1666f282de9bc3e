from tests.benchmarks.engine.speed import Completer, Context, measure, rows


def test_engines_take_turns_on_one_text_if_warm_and_on_new_texts_if_cold() -> None:
    log: list[tuple[str, str, str]] = []

    def engine(name: str) -> Completer:
        def complete(context: Context, typed: str, num_tokens: int) -> int:
            log.append((name, context.before, typed))
            return num_tokens

        return Completer(name, complete)

    engines = [engine("lacuna"), engine("b")]
    found = list(measure(engines, lambda text: [0] * len(text.split()), lengths=(4,), warm=3, cold=2))
    assert [name[-1] for name, *_ in log] == [*"ab" * (1 + 1 + 3 + 2)]
    warm, cold = log[2:10], log[10:]
    assert len({before for _, before, _ in warm}) == 1
    assert [len(typed) for name, _, typed in warm if name == "b"] == [0, 1, 2, 3]
    assert len({before for _, before, _ in cold}) == 2
    assert [(row["context"], row["tokens"], row["runs"]) for row in rows(found)] == [("warm", 4, 3), ("cold", 4, 2)]
