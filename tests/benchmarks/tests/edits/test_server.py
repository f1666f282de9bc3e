"""Next edits of real commits: what is offered counts only with the commit's very text, also from a real server."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from tests.benchmarks.edits.dataset import EditCase, LineEdit
from tests.benchmarks.edits.judging import Verdict, judge

ROOT = Path(__file__).parents[4]
FILLER = "".join(f"value_{n} = compute_{n}(source_{n})\n" for n in range(6))
REPEAT = EditCase(
    "owner/name@1:a.py",
    "repeat",
    "python",
    "a.py",
    f"import brotli_old\n{FILLER}keep(brotli_old, 1)\n{FILLER}show(brotli_old)\n",
    [
        LineEdit(0, 1, ["import brotlicffi"]),
        LineEdit(7, 8, ["keep(brotlicffi, 1)"]),
        LineEdit(14, 15, ["show(brotlicffi)"]),
    ],
    0,
    [1],
)
CHANGES = [LineEdit(0, 1, ["first = 1"]), LineEdit(2, 2, ["more()"])]
NEAR = EditCase("owner/name@2:b.py", "near", "python", "b.py", FILLER, CHANGES, 0, [1])


@pytest.mark.parametrize(
    ("kept", "shown", "verdict"),
    [
        ("brotli_old", "brotli_old", Verdict(1, 0, 0, 0, 0)),
        ("brotlicffi", "brotli_old", Verdict(1, 1, 1, 0, 0)),
        ("brotlicffi", "brotlicffi", Verdict(1, 1, 2, 1, 0)),
        ("brotli", "brotlicffi", Verdict(1, 0, 2, 1, 1)),
    ],
)
def test_a_place_counts_only_with_the_text_of_the_commit(kept: str, shown: str, verdict: Verdict) -> None:
    lines = f"import brotlicffi\n{FILLER}keep({kept}, 1)\n{FILLER}show({shown})\n"
    assert judge(REPEAT, lines.splitlines(keepends=True)) == verdict


def test_what_a_language_server_offers_is_judged_in_both_ways(tmp_path: Path) -> None:
    file, records = tmp_path / "cases.jsonl.gz", tmp_path / "records.jsonl"
    file.write_bytes(gzip.compress(b"".join(msgspec.json.encode(case) + b"\n" for case in (REPEAT, NEAR))))
    command = [sys.executable, "-m", "tests.benchmarks", "next-edits", str(file), "--without-model", "--json"]
    ended = subprocess.run([*command, "--records", str(records)], capture_output=True, text=True, check=True, cwd=ROOT)
    rows = {(row["way"], row["kind"]): row for row in json.loads(ended.stdout)}
    for way in ("all at once", "one by one"):
        repeat, near = rows[way, "repeat"], rows[way, "near"]
        assert [repeat[name] for name in ("found", "offered", "wrong", "whole", "recall")] == [1, 2, 0, 1, 1]
        assert (near["found"], near["expected"]) == (0, 1)
        assert repeat["ms p50"] > 0
    assert len(records.read_text().splitlines()) == 4
