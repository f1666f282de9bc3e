import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.server.cli.conftest import FakeEngine, Lacuna


@pytest.fixture
def source(tmp_path: Path) -> Path:
    file = tmp_path / "code.py"
    file.write_bytes("\ufeffx = <<fill>>  # ä👍\r\n\t<<fill>>\r\n".encode())
    return file


FILLED = "\ufeffx = value  # ä👍\r\n\tif a:\r\n    b()\r\n".encode()


@pytest.mark.parametrize("forced", ["", "1"])
def test_fill_prints_the_file_byte_for_byte(
    lacuna: Lacuna, source: Path, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch, forced: str
) -> None:
    if forced:  # as in CI, where it is about what people see
        monkeypatch.setenv("FORCE_COLOR", forced)
    before = source.read_bytes()
    code, out, err = lacuna("fill", source)
    assert (code, out) == (0, FILLED)
    assert forced or not err
    assert source.read_bytes() == before
    request = engine.requests[0]
    assert request.path == str(source)
    marked = [request.text.encode()[region.start : region.end] for region in request.regions]
    assert marked == [b"<<fill>>", b"<<fill>>"]


def test_complete_puts_the_gap_at_the_position(lacuna: Lacuna, source: Path, engine: FakeEngine) -> None:
    source.write_bytes("ä = 1\r\nreturn \r\n".encode())
    code, out, _ = lacuna("complete", source, "--at", "2:7", "--json")
    assert code == 0
    assert json.loads(out)["text"] == "ä = 1\r\nreturn value\r\n"
    assert [(region.start, region.end) for region in engine.requests[0].regions] == [(15, 15)]
    assert lacuna("complete", source, "--at", "2:7")[1] == b"value\n"


def test_every_option_reaches_the_engine(lacuna: Lacuna, source: Path, engine: FakeEngine) -> None:
    options = "--steps 4 --max-tokens 32 --temperature 0.5 --seed 7 --schedule single --deadline-ms 900"
    options += " --no-syntax --language python --candidates 3"
    assert lacuna("fill", source, *options.split())[0] == 0
    request = engine.requests[0]
    asked = request.options
    assert (asked.steps, asked.schedule, asked.deadline_ms, asked.syntax) == (4, "single", 900, False)
    assert (asked.temperature, asked.seed) == (0.5, 7)
    assert (request.language, request.candidates) == ("python", 3)
    assert {region.max_tokens for region in request.regions} == {32}


def test_no_valid_fill_fails_and_writes_nothing(lacuna: Lacuna, source: Path, engine: FakeEngine) -> None:
    before = source.read_bytes()
    engine.status, engine.fills, engine.message = "no_valid_fill", ("<<fill>>",) * 2, "every draft broke the syntax"
    said = f"every draft broke the syntax\nlacuna: lacuna fill --each {source} fills the gaps that can be filled\n"
    assert lacuna("fill", source, "--write") == (1, b"", f"lacuna: {said}")
    assert source.read_bytes() == before
    code, out, _ = lacuna("fill", source, "--json")
    shown = json.loads(out)
    assert (code, shown["status"], shown["text"]) == (1, "no_valid_fill", before.decode())


@pytest.mark.parametrize(
    ("data", "arguments", "message"),
    [
        (None, ["fill"], "No such file or directory"),
        (b"\0\1\2", ["fill"], "is a binary file"),
        (b"caf\xe9", ["fill"], "is not UTF-8 text"),
        (b"x = 1\n", ["fill"], "has no <<fill>> marker"),
        (b"x = 1\n", ["complete", "--at", "9:0"], "line 9 is outside"),
        (b"x = 1\n", ["complete", "--at", "1:6"], "column 6 is outside line 1"),
        (b"x = 1\n", ["complete", "--at", "here"], "a position is LINE:COL"),
        (b"<<fill>>", ["fill", "--model", "gpt"], "unknown model 'gpt'; known: qwen2.5-coder-0.5b, qwen2.5-coder-1"),
        (b"<<fill>>", ["fill"], "is not on this machine; run: lacuna models pull qwen2.5-coder-0.5b"),
        (b"<<fill>>", ["fill", "--nope"], "No such option: --nope"),
        (b"<<fill>>", ["fill", "--max-tokens", "0"], "'--max-tokens'"),
        (b"<<fill>>", ["fill", "--schedule", "magic"], "'--schedule'"),
        (b"<<fill>>", ["fill", "--language", "pyton"], "unknown language 'pyton'; did you mean python?"),
        (b"<<fill>>", ["fill", "--language", "basic9000"], "unknown language 'basic9000'; known: python, "),
        (b"<<fill>>", ["context", "--at", "1:0", "--language", "ruste"], "did you mean rust?"),
        (b"<<fill>>", ["refactor", "--lang", "typescrip", "a", "b"], "did you mean typescript"),
        (b"<<fill>>", ["complete"], "'--at'"),
        (b"<<fill>>", ["fill", "other.py"], "several files need --write, --json or --interactive"),
        (b"<<fill>>", ["fill", "--json", "--language", "python", "-"], "- reads stdin and writes stdout"),
        (b"<<fill>>", ["fill", "--workspace", "none"], "is not a folder"),
        (b"<<fill>>", ["fill", "--interactive", "--json"], "it cannot be combined with --json"),
        (b"<<fill>>", ["fill", "--interactive", "--each"], "it cannot be combined with --each"),
        (b"a\nb\nc\n", ["edit", "-m", "count", "--lines", "2:9"], "line 9 is outside"),
        (b"a\nb\nc\n", ["edit", "-m", "count", "--lines", "0:1"], "lines are counted from 1"),
        (b"a\nb\nc\n", ["edit", "-m", "count", "--lines", "3:2"], "the first comes before the last"),
        (b"a\nb\nc\n", ["edit", "-m", "count", "--lines", "9" * 5_000], "lines are A:B, such as 10:20"),
        (b"a\nb\nc\n", ["edit", "-m", " ", "--lines", "2"], "the instruction is empty"),
        (b"hello", ["models", "pull", "--from"], "does not hold the weights of qwen2.5-coder-0.5b"),
        (None, ["models", "pull", "--from"], ": no such file or folder"),
    ],
)
def test_bad_input_is_reported_in_one_line_with_exit_code_2(
    lacuna: Lacuna, cache: Path, data: bytes | None, arguments: list[str], message: str
) -> None:
    file = cache.with_name("code.py")
    if data is not None:
        file.write_bytes(data)
    code, out, err = lacuna(*arguments, file)
    assert (code, out, err.count("\n")) == (2, b"", 1)
    assert err.startswith("lacuna: ")
    assert message in err


def test_the_models_are_listed_and_shown(lacuna: Lacuna, cache: Path) -> None:
    described = json.loads(lacuna("models", "list", "--json")[1])["models"]
    names = ["qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b", "qwen2.5-coder-7b"]
    assert [(model["name"], model["state"]) for model in described] == [(name, "absent") for name in names]
    assert [model["default"] for model in described] == ["LACUNA_MODEL names it", "", ""]
    assert b"absent" in lacuna("models", "list")[1]
    assert json.loads(lacuna("models", "show", "--json")[1]) == described[0]
    assert lacuna("models", "show", "gpt")[0] == 2


def test_a_reader_that_closes_the_pipe_is_no_error() -> None:
    command = [sys.executable, "-m", "lacuna_server", "models", "show"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""


def test_help_and_the_model_list_load_no_torch() -> None:
    for arguments in (["--help"], ["models", "list"]):
        run = f"from lacuna_server.__main__ import LACUNA; LACUNA.run({arguments!r})"
        code = f"{run}\nimport sys; print('torch' in sys.modules)"
        ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
        assert ended.stdout.splitlines()[-1] == "False"
