"""What libllama opens, by whom a file is read, and what is refused in one line."""

import math
import struct
import subprocess
import sys
from pathlib import Path

import gguf
import pytest
from msgspec.structs import replace
from tests.model import gguf_files, tiny
from tests.model.fim import tiny_fim
from tests.model.loading import test_chat

from lacuna_model.core.errors import OtherKindError, RequestError, WeightsError
from lacuna_model.core.params import AnswerChat, ChatMessage, DecodeOptions, EditLines, InfillRequest, Region
from lacuna_model.engine import Engine
from lacuna_model.fim.context import FimContext
from lacuna_model.llama import library
from lacuna_model.llama.library import Device, Library
from lacuna_model.llama.loading import SPARE, LoadedLlama, gpu_layers
from lacuna_model.loading.weights import GgufReader
from lacuna_model.readers import LLAMA, OWN, load

from . import shapes

pytestmark = pytest.mark.usefixtures("cache")
WORDS = tiny_fim.VOCABULARY.tokens[: tiny_fim.FIRST]
SEED = ("<[fim-prefix]>", "<[fim-suffix]>", "<[fim-middle]>", "<|a|>", "<|b|>")
PLAIN = tuple(f"<|plain_{index}|>" for index in range(len(tiny_fim.NAMES)))
CODESTRAL = ("[PREFIX]", "[SUFFIX]", "[MIDDLE]", "<|a|>", "<|b|>")


def one_line(error: BaseException, *parts: str) -> None:
    assert "\n" not in str(error)
    for part in parts:
        assert part in str(error)


def test_a_file_of_another_architecture_is_read_by_libllama(tmp_path: Path) -> None:
    path = shapes.write(tmp_path / "a.gguf", "granite")
    assert isinstance(load(str(path), threads=1), LoadedLlama)
    with pytest.raises(OtherKindError, match="'granite'"):
        load(str(path), threads=1, backend=OWN)


def test_nothing_of_it_is_loaded_where_no_model_needs_it(tmp_path: Path) -> None:
    path = gguf_files.write_fim(tmp_path / "a.gguf")
    code = f"""
import sys
from lacuna_model.engine import Engine
Engine.load({str(path)!r}, threads=1)
assert not [name for name in sys.modules if name.startswith(("lacuna_model.llama", "xllamacpp"))]
"""
    subprocess.run([sys.executable, "-P", "-c", code], check=True, timeout=120)


def test_without_the_library_a_line_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "found", lambda named: None)
    library.library.cache_clear()
    try:
        with pytest.raises(WeightsError) as raised:
            load(str(shapes.write(tmp_path / "a.gguf", "gemma")), threads=1)
    finally:
        library.library.cache_clear()
    one_line(raised.value, "pip install 'lacuna-code[llama]'")


def test_another_library_is_refused_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "no.so").write_bytes(b"not a library")
    for path in (tmp_path / "no.so", Path("libm.so.6")):
        with pytest.raises(WeightsError) as raised:
            Library(path)
        one_line(raised.value, str(path), library.PACKAGE)
    found = library.found()
    assert found is not None
    monkeypatch.setitem(library._CONTEXT_DEFAULTS, library.CELLS, 513)
    with pytest.raises(WeightsError) as raised:
        Library(found)
    one_line(raised.value, "another version", library.PACKAGE)


ABSURD: list[dict[str, object]] = [
    {"granite.block_count": 3},
    {"granite.block_count": 2**31 - 1},
    {"granite.embedding_length": 2**31},
    {"granite.attention.head_count": 3},
    {"granite.attention.head_count": 0},
    {"granite.attention.key_length": 2**30},
    {"granite.context_length": 0},
    {"granite.feed_forward_length": None},
    {"tokenizer.ggml.merges": None},
    {"tokenizer.ggml.model": "unheard of"},
    {"tokenizer.ggml.token_type": [1, 2]},
]


def test_absurd_sizes_are_refused_in_one_line_each(tmp_path: Path) -> None:
    """In a process of its own: what the library refuses by ending the process must be refused before."""
    paths = [
        str(shapes.write(tmp_path / f"odd{number}.gguf", "granite", fields=fields))
        for number, fields in enumerate(ABSURD)
    ]
    code = f"""
from lacuna_model.readers import load
from lacuna_model.core.errors import WeightsError
for path in {paths}:
    try:
        load(path, threads=1)
    except (WeightsError, MemoryError) as error:
        print(error, flush=True)
    else:
        print("loaded:", path)
"""
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, len(done.stdout.splitlines())) == (0, len(ABSURD)), done.stdout + done.stderr[-2000:]
    assert "loaded:" not in done.stdout


def test_weights_that_are_no_numbers_are_refused_in_one_line(tmp_path: Path) -> None:
    """It fails where the library's flag for that is at another place of its settings than :data:`CHECK_TENSORS`."""
    path = shapes.write(tmp_path / "nan.gguf", "granite")
    tensor = next(one for one in gguf.GGUFReader(path).tensors if one.name == "blk.1.ffn_up.weight")
    with path.open("r+b") as file:
        file.seek(tensor.data_offset)
        file.write(struct.pack("<f", math.nan))
    with pytest.raises(WeightsError) as raised:
        load(str(path), threads=1)
    one_line(raised.value, "nan.gguf", "blk.1.ffn_up.weight")


def test_a_model_without_the_tokens_is_refused_in_a_line_that_names_some_that_have_them(tmp_path: Path) -> None:
    path = shapes.write(tmp_path / "a.gguf", "gemma", tokens=[*WORDS, *PLAIN])
    with pytest.raises(WeightsError) as raised:
        load(str(path), threads=1)
    one_line(raised.value, "without fill-in-the-middle tokens", "Qwen3-Coder")


@pytest.mark.parametrize("names", [SEED, CODESTRAL], ids=["Seed-Coder", "Codestral"])
def test_some_prompts_have_the_suffix_first(tmp_path: Path, names: tuple[str, ...]) -> None:
    path = shapes.write(tmp_path / "a.gguf", "granite", tokens=[*WORDS, *names])
    model = load(str(path), threads=1)
    assert isinstance(model, LoadedLlama)
    assert model.fim.suffix_first
    for before, after in (("x = 1\ny = ", "\nz = 3\n"), ("x = 1\ny = x + ", "\nz = 3\n"), ("", "\nz = 3\n")):
        engine = Engine(model)
        region = Region(len(before), len(before), max_tokens=4)
        engine.fill(InfillRequest(before + after, (region,), path="a.py", options=DecodeOptions(deadline_ms=0)))
        (context,) = [session.cache for session in engine.sessions._sessions.values()]
        assert isinstance(context, FimContext)
        prompt = [token for track in context.chain(0) for token in track.ids]
        prompt.append(context.begins(0))
        opened = prompt.index(model.fim.prefix)
        assert prompt[0] == model.fim.suffix
        assert model.tokenizer.decode(prompt[1:opened]) == "\nz = 3\n"
        # Codestral's fill follows the text, Seed-Coder's a token of its own.
        written = prompt[opened + 1 :] if names is CODESTRAL else prompt[opened + 1 : -1]
        assert before.startswith(model.tokenizer.decode(written))
        assert len(before) - len(model.tokenizer.decode(written)) <= 2  # what is healed
        assert names is CODESTRAL or prompt[-1] == model.fim.middle


@pytest.mark.parametrize("backend", [OWN, LLAMA])
def test_a_model_that_only_answers_chats_edits_and_fills_no_gap(tmp_path: Path, backend: str) -> None:
    plain = replace(tiny_fim.VOCABULARY, tokens=(*WORDS, *PLAIN), fim=None)
    fields = {"tokenizer.chat_template": test_chat.TEMPLATE, "tokenizer.ggml.eos_token_id": 2}
    path = gguf_files.write_fim(tmp_path / "chat.gguf", vocabulary=plain, fields=fields)
    engine = Engine(load(str(path), threads=1, backend=backend))
    with pytest.raises(RequestError, match=r"chat\.gguf holds a model without fill-in-the-middle tokens") as refused:
        engine.fill(InfillRequest(tiny.CODE, (Region(4, 4),), path="a.py"))
    one_line(refused.value, "Qwen3-Coder", "Codestral")
    options = DecodeOptions(deadline_ms=0, syntax=False)
    asked = (ChatMessage("user", "x"),)
    answer = Region(0, 0, min_tokens=4, max_tokens=8)
    said = engine.fill(InfillRequest("", (answer,), AnswerChat(asked), options=options))
    assert (said.status, said.stats.nfe > 0) == ("ok", True)
    first, last = tiny.CODE.index("    value = 0"), tiny.CODE.index("    for x in")
    edit = Region(first, last, max_tokens=8)
    edited = engine.fill(InfillRequest(tiny.CODE, (edit,), EditLines("one"), path="a.py", options=options))
    assert edited.stats.nfe > 0


def test_a_tokenizer_of_another_kind_is_libllamas_and_reads_every_byte(tmp_path: Path) -> None:
    pieces = [*(f"<0x{byte:02X}>" for byte in range(256)), "▁x", "x", "▁", "▁=", "=", "de", "def", "d", "e", "f"]
    special = ["<unk>", "<s>", "</s>", "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"]
    tokens = [*special, *pieces]
    kinds = [gguf.TokenType.UNKNOWN, *[gguf.TokenType.CONTROL] * 5, *[gguf.TokenType.BYTE] * 256]
    kinds += [gguf.TokenType.NORMAL] * (len(tokens) - len(kinds))
    fields = {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.pre": "default",
        "tokenizer.ggml.merges": None,
        "tokenizer.ggml.scores": [float(-i) for i in range(len(tokens))],
        "tokenizer.ggml.token_type": [int(kind) for kind in kinds],
        "tokenizer.ggml.add_space_prefix": True,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.unknown_token_id": 0,
    }
    model = load(str(shapes.write(tmp_path / "a.gguf", "gemma", tokens=tokens, fields=fields)), threads=1)
    assert isinstance(model, LoadedLlama)
    for text in ("x = def", "def", " x", "é\n\t∑", "", "a<|fim_middle|>b<s>", "\n\n  x"):
        ids = model.tokenizer.encode(text)
        assert model.tokenizer.decode(ids) == text
        assert model.tokenizer.special_ids.isdisjoint(ids)
    text = "x = \ndef\n"
    found = Engine(model).fill(InfillRequest(text, (Region(4, 4, max_tokens=4),), path="a.py"))
    assert found.status in ("ok", "no_valid_fill")


def test_layers_are_on_the_gpu_as_far_as_its_memory_reaches(tmp_path: Path) -> None:
    file = GgufReader(shapes.write(tmp_path / "a.gguf", "gemma"))
    size = file.path.stat().st_size
    assert gpu_layers(file, [Device("CPU", False, 1 << 40)]) == 0
    assert gpu_layers(file, [Device("CUDA0", True, SPARE + size)]) == -1
    assert gpu_layers(file, [Device("CUDA0", True, SPARE // 2), Device("CUDA1", True, SPARE // 2 + size * 3 // 4)]) == 1
    assert gpu_layers(file, [Device("CUDA0", True, SPARE // 2)]) == 0
