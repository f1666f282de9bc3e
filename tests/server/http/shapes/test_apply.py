import time
from contextlib import suppress

import pytest

from lacuna_server.http.shapes.apply import merge
from lacuna_server.wire.protocol import ServiceError

ORIGINAL = """\
import os


def first():
    value = 1
    return value


def second():
    return 2


def third():
    return 3
"""


def test_code_between_two_markers_replaces_the_block_with_the_same_header() -> None:
    update = "# ... existing code ...\n\ndef second():\n    log()\n    return 22\n\n# ... existing code ...\n"
    assert merge(ORIGINAL, update) == ORIGINAL.replace("    return 2\n", "    log()\n    return 22\n")


def test_several_parts_are_merged_at_their_places() -> None:
    update = "import os\nimport sys\n# ... existing code ...\ndef third():\n    return 33\n"
    wanted = ORIGINAL.replace("import os\n", "import os\nimport sys\n").replace("return 3\n", "return 33\n")
    assert merge(ORIGINAL, update) == wanted


def test_code_that_is_nowhere_in_the_original_is_refused() -> None:
    with pytest.raises(ServiceError, match=r"'def fourth\(\):'") as caught:
        merge(ORIGINAL, "# ... existing code ...\ndef fourth():\n    return 4\n")
    assert caught.value.code == "bad_request"


def test_a_marker_line_full_of_blanks_is_read_in_linear_time() -> None:
    for line in ("#" + " " * 200_000, " " * 200_000 + ".", "# " + "." * 200_000, "\t" * 200_000):
        began = time.process_time()
        with suppress(ServiceError):
            merge("a\n", f"a\n# ... existing code ...\n{line}\n")
        assert time.process_time() - began < 2


@pytest.mark.parametrize("kind", ["all the same", "in turns", "shuffled", "unique and reversed"])
def test_long_texts_are_merged_in_bounded_time(kind: str) -> None:
    """For these texts, comparing every line with every other line would take more than ten seconds."""
    lines = {
        "all the same": ["    pass"] * 1_900,
        "in turns": [f"    a{number % 3}()" for number in range(1_900)],
        "shuffled": [f"    a{number * number % 97}()" for number in range(1_900)],
        "unique and reversed": [f"    a{number}()" for number in range(1_900)],
    }[kind]
    update = "\n".join(["# ... existing code ...", *reversed(lines), "new()", "# ... existing code ..."])
    began = time.process_time()
    with suppress(ServiceError):
        merge("\n".join(lines), update)
    assert time.process_time() - began < 3


def test_repeated_lines_are_found_next_to_unique_lines() -> None:
    original = "def a():\n    x = 1\n    return x\n\n\ndef b():\n    y = 2\n    return x\n"
    update = "# ... existing code ...\n    y = 2\n    y += 1\n    return x\n"
    assert merge(original, update) == original.replace("    y = 2\n", "    y = 2\n    y += 1\n")
