"""Two lines that stand on one: where the whole text has an error then, they are no fill, in any language."""

from itertools import pairwise

import pytest
from tests.model.syntax.conftest import Samples
from tests.model.syntax.test_properties import NAMES

from lacuna_model.core.work import Clock
from lacuna_model.syntax import parses
from lacuna_model.syntax.judge import Judge

MOST = 12  # pairs of lines of a file


@pytest.mark.parametrize("name", NAMES)
def test_lines_that_cannot_be_on_one_line_are_no_fill(samples: Samples, name: str) -> None:
    language, text = samples[name]
    lines = text.splitlines(keepends=True)
    starts = [sum(map(len, lines[:number])) for number in range(len(lines))]
    pairs = [pair for pair in pairwise(range(len(lines))) if lines[pair[0]].strip() and lines[pair[1]].strip()]
    for one, other in pairs[:: max(len(pairs) // MOST, 1)]:
        fill = lines[one].rstrip(b"\r\n") + b"\t" + lines[other].strip()
        begin, end = starts[one], starts[other] + len(lines[other].rstrip(b"\r\n"))
        if parses(text[:begin] + fill + text[end:], language):
            continue
        judge = Judge(text, (begin, end), language, Clock(), in_line=True, strict=True)
        if judge.final(lines[one].rstrip(b"\r\n")):  # without the second line the file is unfinished, which it may be
            continue
        assert judge.closers_after(fill) != b""
        assert not judge.final(fill)
