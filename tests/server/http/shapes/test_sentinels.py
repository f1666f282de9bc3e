import pytest

from lacuna_model.core.params import Snippet
from lacuna_server.http.shapes.exchange import Prompt
from lacuna_server.http.shapes.sentinels import is_prompt, parse


@pytest.mark.parametrize(
    "prompt",
    [
        "<|fim_prefix|>A<|fim_suffix|>B<|fim_middle|>",
        "<|fim_suffix|>B<|fim_prefix|>A<|fim_middle|>",
        "<fim_prefix>A<fim_suffix>B<fim_middle>",
        "<fim_suffix>B<fim_prefix>A<fim_middle>",
        "<PRE> A <SUF>B <MID>",
        "<PRE> <SUF>B <MID> A",
        "<\uff5cfim\u2581begin\uff5c>A<\uff5cfim\u2581hole\uff5c>B<\uff5cfim\u2581end\uff5c>",
        "[SUFFIX]B[PREFIX]A",
        "<|code_prefix|>A<|code_suffix|>B<|code_middle|>",
        "<[fim-suffix]>B<[fim-prefix]>A<[fim-middle]>",
    ],
)
def test_the_sentinels_of_every_model_family_are_parsed(prompt: str) -> None:
    assert parse(prompt) == Prompt("A", "B")
    assert is_prompt(prompt)


PAIR = "<fim_prefix>A<fim_suffix>B<fim_middle>"
CODEGEEX = (
    "<|user|>\n###PATH:src/shop.py\n###LANGUAGE:python\n###MODE:BLOCK\n"
    "<|code_suffix|>B<|code_prefix|>A<|code_middle|><|assistant|>\n"
)


@pytest.mark.parametrize(
    ("prompt", "suffix", "expected"),
    [
        (PAIR, "after", Prompt(PAIR, "after")),
        ("A", "<|endoftext|>", Prompt("A")),
        (PAIR, "", Prompt("A", "B")),
        ("<|fim_prefix|>A", "B", Prompt("A", "B")),
        ("<|file_sep|>src/a.py\n<|fim_prefix|>", "<|endoftext|>", Prompt("", "", "src/a.py")),
        (CODEGEEX, None, Prompt("A", "B", "src/shop.py")),
    ],
)
def test_a_suffix_and_what_continue_and_codegeex_write(prompt: str, suffix: str | None, expected: Prompt) -> None:
    assert parse(prompt, suffix) == expected


def test_the_files_of_a_prompt_of_codestral_are_read() -> None:
    files = "+++++ prices.py \nTAX = 0.2\n\n+++++ shop.py\nA"
    expected = Prompt("A", "B", "shop.py", (Snippet("prices.py", "TAX = 0.2", reason="prompt"),))
    assert parse(files, "B") == parse(f"[SUFFIX]B[PREFIX]{files}") == expected
    assert parse("+++++ is no header", "B") == Prompt("+++++ is no header", "B")


@pytest.mark.parametrize("path", ["app/[id]/page.tsx", "src/(auth)/login.ts", "My App/a.py", "Makefile", "C:\\w\\a.py"])
def test_a_path_of_a_repository_may_have_any_characters(path: str) -> None:
    open_file = f"<|repo_name|>shop\n<|file_sep|>lib/x.ts\nX = 1\n<|file_sep|>{path}\n"
    other_file = f"<|repo_name|>shop\n<|file_sep|>{path}\nX = 1\n<|file_sep|>lib/x.ts\n"
    gap = "<|fim_prefix|>A<|fim_suffix|>B<|fim_middle|>"
    assert parse(open_file + gap) == Prompt("A", "B", path, (Snippet("lib/x.ts", "X = 1\n", reason="prompt"),))
    assert parse(other_file + gap) == Prompt("A", "B", "lib/x.ts", (Snippet(path, "X = 1\n", reason="prompt"),))
