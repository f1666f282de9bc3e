"""Prompts of next-edit models, as their clients write them."""

import time

import msgspec
import pytest

from lacuna_server.http.shapes.exchange import Answer, Exchange
from lacuna_server.http.shapes.openai import TextReply, TextRequest, completion
from lacuna_server.http.shapes.windows import parse

OTHERS = "".join(f"value_{n} = compute_{n}(source_{n})\n" for n in range(5))
CURRENT = f"import new_name\n{OTHERS}show(old_name)\n"
FOLLOWED = CURRENT.replace("old_name", "new_name")
SWEEP = (
    "<|file_sep|>lib/other.py\nhelp = 1\n"
    "<|file_sep|>app/main.py.diff\noriginal:\nimport old_name\nupdated:\nimport new_name\n"
    f"<|file_sep|>original/app/main.py:1:7\n{CURRENT.replace('new_name', 'old_name')}"
    f"<|file_sep|>current/app/main.py:1:7\n{CURRENT}"
    "<|file_sep|>updated/app/main.py:1:7\n"
)
HISTORY = "--- a/app/main.py\n+++ b/app/main.py\n@@ -1,1 +1,1 @@\n-import old_name\n+import new_name\n"
BEFORE, REGION = f"import new_name\n{OTHERS}", "show(old_name)\nkeep(1)<|user_cursor|>\n"
ZETA = f"<|file_sep|>lib/other.py\nhelp = 1\n<|file_sep|>edit history\n{HISTORY}<|file_sep|>app/main.py\n"
MERGE = f"{ZETA}<|fim_prefix|>{BEFORE}<|fim_suffix|>end()\n<|fim_middle|><<<<<<< CURRENT\n{REGION}=======\n"
IN_PREFIX = f"{ZETA}<|fim_prefix|>{BEFORE}<<<<<<< CURRENT\n{REGION}=======\n<|fim_suffix|>end()\n<|fim_middle|>"
MIDDLE = f"{ZETA}<|fim_prefix|>\n{BEFORE}<|fim_suffix|>\nend()\n<|fim_middle|>current\n{REGION}<|fim_middle|>updated\n"
ORDERED = f"{ZETA}<|fim_prefix|>\n{BEFORE}<|fim_middle|>current\n{REGION}<|fim_suffix|>\nend()\n<|fim_middle|>updated\n"
MARKDOWN = (
    '### Instruction:\nYou are a code completion assistant.\n\n### User Edits:\n\nUser edited "app/main.py":\n'
    f"```diff\n@@ -1,1 +1,1 @@\n-import old_name\n+import new_name\n```\n\n### User Excerpt:\n\n```app/main.py\n"
    f"<|start_of_file|>\n{BEFORE}<|editable_region_start|>\n"
    "show(old_name)\nkeep(1)<|user_cursor_is_here|>\n<|editable_region_end|>\nend()\n```\n\n### Response:\n"
)
FILES = f"<filename>lib/other.py\nhelp = 1\n<filename>edit_history\n{HISTORY}<filename>app/main.py\n{BEFORE}"
SEED = f"<[fim-suffix]>end()\n<[fim-prefix]>{FILES}"
SEED_MERGE = f"{SEED}<<<<<<< CURRENT\n{REGION}=======\n<[fim-middle]>"
FIRST_LINE, SECOND_LINE = REGION.splitlines(keepends=True)
MARKED = f"{SEED}<|marker_1|>{FIRST_LINE}<|marker_2|>{SECOND_LINE}<|marker_3|>\n<[fim-middle]>"
REWRITTEN = "show(new_name)\nkeep(1)\n"


def exchange(prompt: str, **more: object) -> Exchange:
    return completion(msgspec.convert({"prompt": prompt, **more}, TextRequest), "model")


def text(reply: object) -> str:
    assert isinstance(reply, TextReply)
    return reply.choices[0].text


@pytest.mark.parametrize(
    ("prompt", "answer"),
    [
        (SWEEP, FOLLOWED.removesuffix("\n")),
        (SWEEP + "import new_name\n", FOLLOWED.removeprefix("import new_name\n").removesuffix("\n")),
        (MERGE, f"{REWRITTEN}>>>>>>> UPDATED\n"),
        (MIDDLE, REWRITTEN),
        (ORDERED, REWRITTEN),
        (SEED_MERGE, f"{REWRITTEN}>>>>>>> UPDATED\n"),
        (MARKED, f"<|marker_1|>{REWRITTEN}<|marker_3|>"),
        (IN_PREFIX, f"{REWRITTEN}>>>>>>> UPDATED\n"),
        (IN_PREFIX + "show(", f"{REWRITTEN}>>>>>>> UPDATED\n".removeprefix("show(")),
        (SEED_MERGE + "show(", f"{REWRITTEN}>>>>>>> UPDATED\n".removeprefix("show(")),
        (MARKED + "<|marker_1|>show(", f"{REWRITTEN}<|marker_3|>".removeprefix("show(")),
        (MIDDLE + "show(", REWRITTEN.removeprefix("show(")),
        (MARKDOWN, f"<|editable_region_start|>\n{REWRITTEN}<|editable_region_end|>\n```\n"),
    ],
    ids=[
        *("sweep", "sweep, begun", "merge", "region at the end", "region in its place", "seed", "markers"),
        *("in the prefix", "in the prefix, begun", "seed, begun", "markers, begun", "at the end, begun", "markdown"),
    ],
)
def test_the_window_becomes_what_follows_from_the_last_change(prompt: str, answer: str) -> None:
    run = exchange(prompt)
    assert run.ready is not None
    assert text(run.reply(run.ready)) == answer
    (chunk,) = run.last(run.ready)
    assert text(chunk) == answer


@pytest.mark.parametrize("begun", ["show(old_name)\n", "show(new_name)\n"])
def test_what_the_client_has_written_itself_stays(begun: str) -> None:
    start = CURRENT.removesuffix("show(old_name)\n")
    run = exchange(SWEEP.replace(CURRENT, f"{CURRENT}keep(old_name)\n") + start + begun)
    assert run.ready is not None
    assert text(run.reply(run.ready)) == "keep(new_name)"


BEGUN = "<|file_sep|>current/a.py\na = 1<|cursor|>\nb = 2\n<|file_sep|>updated/a.py\na = 1\n"


@pytest.mark.parametrize(
    ("prompt", "fill", "answer"),
    [
        (BEGUN, "more()\n", "more()\nb = 2"),  # behind what the client has written
        (MARKED.replace("old_name)", "another)"), "", "<|marker_1|><|marker_1|>"),  # it says that nothing changes
    ],
    ids=["begun", "markers"],
)
def test_where_nothing_follows_the_model_writes_at_the_cursor(prompt: str, fill: str, answer: str) -> None:
    run = exchange(prompt)
    assert run.ready is None
    assert text(run.reply(Answer((fill,)))) == answer


@pytest.mark.parametrize(
    "prompt",
    [
        "x = 1",
        "<|fim_prefix|>a<|fim_suffix|>b<|fim_middle|>",
        "<|file_sep|>current/a.py\n",
        "<|user_cursor|>",
        "",
        "<[fim-suffix]>a<[fim-prefix]>b<|user_cursor|><[fim-middle]>",
    ],
)
def test_other_prompts_are_no_windows(prompt: str) -> None:
    assert parse(prompt) is None


QWEN, MARKERS, CURSOR = "# <|fim_prefix|><|fim_suffix|>\n", "# <|marker_1|><|marker_2|>\n", "# <|user_cursor|>\n"


@pytest.mark.parametrize(
    ("prompt", "path", "before", "after"),
    [
        (MARKED.replace(BEFORE, QWEN), "app/main.py", QWEN, "end()\n"),
        (MARKED.replace("end()", "# <|fim_middle|>"), "app/main.py", BEFORE, "# <|fim_middle|>\n"),
        (MIDDLE.replace(BEFORE, "# <|file_sep|>\n"), "app/main.py", "# <|file_sep|>\n", "end()\n"),
        (MIDDLE.replace(BEFORE, MARKERS), "app/main.py", MARKERS, "end()\n"),
        (MIDDLE.replace(BEFORE, "<<<<<<< CURRENT\n"), "app/main.py", "<<<<<<< CURRENT\n", "end()\n"),
        (MARKDOWN.replace(BEFORE, CURSOR), "app/main.py", CURSOR, "end()\n"),
        (MIDDLE.replace("<|fim_suffix|>\nend()\n", ""), "app/main.py", BEFORE, ""),
        (MIDDLE.removeprefix(ZETA), "", BEFORE, "end()\n"),
    ],
)
def test_a_file_may_tell_of_marks_and_a_part_may_be_absent(prompt: str, path: str, before: str, after: str) -> None:
    window = parse(prompt)
    assert window is not None
    assert (window.path, window.before, window.after) == (path, before, after)
    assert window.current == REGION.replace("<|user_cursor|>", "")


def history(old: str, new: str) -> str:
    return f"<|file_sep|>a.py.diff\noriginal:\n{old}\nupdated:\n{new}\n"


CALLS = "".join(f"foo(a, b, c{n % 7}, x=1, y=2)\n" for n in range(390))
ALIKE = "x = (a, b, a, b, a)\n" * 390


@pytest.mark.parametrize(
    ("changes", "original", "current"),
    [
        ([], "a\nb\n" * 35_000, "b\nc\na\n" * 23_000),  # compared as a whole, it takes hours
        ([], "foo(bar)\n" * 10_000, "x = 1\n" * 20_000 + "foo(baz)\n"),
        ([history(f"f{n}(a)", f"g{n}(a)") for n in range(20_000)], "show(one)\n" * 200, "show(two)\n" * 200),
        ([history(*("".join(f"v{n} {end}\n" for n in range(130)) for end in "ab"))] * 8, "", "c a\n" * 399),
        ([history(CALLS, CALLS.replace("x=1, y", f"x={k}, y")) for k in range(2, 10)], "", CALLS),
        ([history(ALIKE, ALIKE[:4000] + ALIKE[4000:].replace("a, b", "a, c", 1))] * 8, "", ALIKE),
        ([history("a b " * 99 + " a", "a b " * 50 + " c " + "a b " * 49)] * 8, "", "a b " * 3900),
    ],
    ids=["lines in another order", "lines alike", "many changes", "exchanges", "lines", "places", "one line"],
)
def test_a_prompt_that_no_client_sends_ends(changes: list[str], original: str, current: str) -> None:
    """All changes have one budget of work. Each had its own, and the fourth prompt took more than nine minutes."""
    prompt = f"{''.join(changes)}<|file_sep|>original/a.py\n{original or current}<|file_sep|>current/a.py\n{current}"
    window = parse(f"{prompt}<|file_sep|>updated/a.py\n")
    assert window is not None
    began = time.thread_time()
    assert window.followed() == window.current
    assert time.thread_time() - began < 15  # with the budget about one


def test_a_name_is_followed_in_no_function_with_its_own_and_strings_after_the_code() -> None:
    old, new = "import old_name\n", "import new_name\n"
    uses = "show('old_name', old_name)\n"
    own = "def f(old_name):\n    return old_name\n"
    prompt = f"{history(old, new)}<|file_sep|>current/a.py\n{OTHERS}{uses}{own}<|file_sep|>updated/a.py\n"
    window = parse(prompt)
    assert window is not None
    assert window.followed() == f"{OTHERS}show('old_name', new_name)\n{own}".removesuffix("\n")


def test_lines_of_a_history_end_where_editors_end_them() -> None:
    history = HISTORY.replace("import", "import a\x0cb;")
    window = parse(MERGE.replace(HISTORY, history))
    assert window is not None
    assert ("import a\x0cb; old_name\n", "import a\x0cb; new_name\n") in window.changes
