"""Shards keep documents exactly, are read in a resumable order and refuse damage by name."""

import hashlib
import random
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lacuna_model.train.documents import Document, DocumentWriter
from lacuna_model.train.manifest import Manifest
from lacuna_model.train.packages import CorpusError
from lacuna_model.train.packing import pack_corpus
from lacuna_model.train.shards import ShardError, ShardReader, ShardWriter, TokenDocument, read_header

TOKENIZER = "letters-1"


class Letters:
    """A byte-level tokenizer small enough for a test."""

    fingerprint = TOKENIZER

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return [[byte + 300 for byte in text.encode()] for text in texts]

    def decode(self, tokens: Sequence[int]) -> str:
        return bytes(token - 300 for token in tokens).decode()


def write(
    folder: Path, documents: Sequence[Sequence[int]], max_bytes: int = 1 << 20, package: str = "package"
) -> list[Path]:
    with ShardWriter(folder, "train", TOKENIZER, max_bytes) as writer:
        for tokens in documents:
            writer.write(writer.checked(tokens, package), "python", package)
    return writer.paths


def numbered(count: int) -> list[list[int]]:
    return [[i, i + 1, i + 2] * (i % 5) + [i] for i in range(count)]


def random_documents(count: int, length: int) -> list[list[int]]:
    tokens: list[list[int]] = np.random.default_rng(0).integers(0, 1 << 16, (count, length)).tolist()
    return tokens


def epoch(reader: ShardReader, paths: Sequence[Path], number: int = 0) -> list[TokenDocument]:
    """All documents of one epoch."""
    draws = sum(read_header(path).draws for path in paths)
    return [reader.read(position) for position in range(number * draws, (number + 1) * draws)]


@settings(max_examples=20, deadline=None)
@given(st.lists(st.lists(st.integers(0, 65535), max_size=40), min_size=1, max_size=30), st.integers(0, 99))
def test_every_document_comes_back_once_an_epoch(
    tmp_path_factory: pytest.TempPathFactory, documents: list[list[int]], seed: int
) -> None:
    paths = write(tmp_path_factory.mktemp("shards"), documents)
    reader = ShardReader(paths, TOKENIZER, seed)
    assert sorted(document.tokens for document in epoch(reader, paths, seed % 3)) == sorted(documents)
    header = read_header(paths[0])
    assert (header.documents, header.tokens) == (len(documents), sum(map(len, documents)))


def test_long_documents_come_up_more_often(tmp_path: Path) -> None:
    paths = write(tmp_path, [[1], [2] * 3000])
    found = [document.tokens[0] for document in epoch(ShardReader(paths, TOKENIZER), paths)]
    assert sorted(found) == [1, 2, 2, 2]


def test_language_and_package_come_back(tmp_path: Path) -> None:
    with ShardWriter(tmp_path, "train", TOKENIZER) as writer:
        for package, language in (("a", "go"), ("b", "python"), ("a", "python")):
            writer.write(writer.checked([1], package), language, package)
    found = sorted((d.package, d.language) for d in epoch(ShardReader(writer.paths, TOKENIZER), writer.paths))
    assert found == [("a", "go"), ("a", "python"), ("b", "python")]


def test_a_neighbour_is_another_file_of_the_package(tmp_path: Path) -> None:
    with ShardWriter(tmp_path, "train", TOKENIZER) as writer:
        for token, package in enumerate(("a", "b", "a", "a")):
            writer.write(writer.checked([token], package), "python", package)
    reader = ShardReader(writer.paths, TOKENIZER)
    seen: dict[int, set[int]] = {}
    for position in range(200):
        document, beside = reader.read(position), reader.neighbour(position, random.Random(position))
        seen.setdefault(document.tokens[0], set()).update(beside.tokens if beside else ())
    assert seen == {0: {2, 3}, 1: set(), 2: {0, 3}, 3: {0, 2}}


def test_no_shard_is_larger_than_its_limit(tmp_path: Path) -> None:
    documents = random_documents(200, 500)
    paths = write(tmp_path, documents, max_bytes=40_000)
    assert len(paths) > 4
    assert all(path.stat().st_size <= 40_000 for path in paths)
    assert sum(read_header(path).documents for path in paths) == 200


def test_the_order_depends_on_the_seed_and_the_epoch_alone(tmp_path: Path) -> None:
    paths = write(tmp_path, numbered(60) + random_documents(60, 200), max_bytes=9000)
    assert len(paths) > 2

    def order(seed: int, number: int) -> list[list[int]]:
        return [d.tokens for d in epoch(ShardReader(paths[::-1], TOKENIZER, seed), paths, number)]

    assert order(1, 0) == order(1, 0)
    assert order(1, 0) != order(2, 0)
    assert order(1, 0) != order(1, 1)
    assert sorted(order(1, 0)) == sorted(order(2, 3))


@pytest.mark.parametrize("stop", [0, 1, 59, 119, 120, 121, 250])
def test_reading_resumes_at_any_position(tmp_path: Path, stop: int) -> None:
    paths = write(tmp_path, numbered(60) + random_documents(60, 200), max_bytes=9000)
    first, second = (ShardReader(paths, TOKENIZER, 7) for _ in range(2))
    whole = [first.read(position) for position in range(300)]
    assert [second.read(position) for position in range(stop, 300)] == whole[stop:]


def test_shards_before_the_position_are_not_read(tmp_path: Path) -> None:
    paths = write(tmp_path, random_documents(60, 200), max_bytes=9000)
    reader = ShardReader(paths, TOKENIZER, 7)
    last = epoch(reader, paths)[-1]
    for path in paths[:-1]:
        path.unlink()
    assert reader.read(59) == last


def test_a_shard_on_its_way_is_waited_for(tmp_path: Path) -> None:
    paths = write(tmp_path, random_documents(60, 200), max_bytes=9000)
    whole = epoch(ShardReader(paths, TOKENIZER), paths)
    last = paths[-1].rename(tmp_path / "later")
    reader = ShardReader(paths, TOKENIZER, patience=60)
    assert reader.read(0) == whole[0]
    mover = threading.Thread(target=lambda: (time.sleep(0.3), last.rename(paths[-1])))
    mover.start()
    assert reader.read(59) == whole[59]
    mover.join()


def test_a_shard_that_does_not_come_is_named(tmp_path: Path) -> None:
    (path,) = write(tmp_path, numbered(3))
    reader = ShardReader([path, tmp_path / "train-00001.shard"], TOKENIZER, patience=0.3)
    assert reader.read(0)
    with pytest.raises(ShardError, match=r"train-00001\.shard: cannot read the shard: No such file"):
        reader.read(3)


@pytest.mark.parametrize("where", ["preface", "header", "payload", "end"])
def test_a_damaged_shard_is_named(tmp_path: Path, where: str) -> None:
    (path,) = write(tmp_path, random_documents(20, 50))
    data = bytearray(path.read_bytes())
    position = {"preface": 1, "header": 30, "payload": len(data) // 2, "end": len(data) - 1}[where]
    data[position] ^= 0x40
    path.write_bytes(data)
    with pytest.raises(ShardError, match=r"train-00000\.shard: .*damaged"):
        ShardReader([path], TOKENIZER).read(0)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_no_cut_and_no_flipped_bit_goes_unnoticed(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    (path,) = write(tmp_path_factory.mktemp("shards"), numbered(20))
    content = bytearray(path.read_bytes())
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(0, len(content) - 1)) :]
    else:
        content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(content)
    with pytest.raises(ShardError, match=r"train-00000\.shard"):
        ShardReader([path], TOKENIZER).read(0)


def test_another_tokenizer_is_refused(tmp_path: Path) -> None:
    paths = write(tmp_path, numbered(3))
    with pytest.raises(ShardError, match=r"train-00000\.shard: written with tokenizer letters-1, .* is other"):
        ShardReader(paths, "other")


def test_missing_and_empty_shards_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ShardError, match=r"none\.shard: cannot read the shard: No such file"):
        ShardReader([tmp_path / "none.shard"], TOKENIZER)
    with pytest.raises(ShardError, match="no shards"):
        ShardReader([], TOKENIZER)
    assert write(tmp_path, []) == []


def test_tokens_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ShardError, match="token 65536 of package does not fit"):
        write(tmp_path, [[1, 65536]])


def test_a_full_disk_is_named_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = Path.open

    def full(path: Path, mode: str = "r") -> object:
        return original(Path("/dev/full"), "wb") if mode == "xb" else original(path, mode)

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(ShardError, match=r"train-00000\.shard: cannot write the shard: No space left"):
        write(tmp_path, random_documents(20, 50))
    assert list(tmp_path.iterdir()) == []


def test_a_writer_that_fails_leaves_no_last_shard(tmp_path: Path) -> None:
    writer = ShardWriter(tmp_path, "train", TOKENIZER)
    writer.write(writer.checked([1], "package"), "python", "package")
    writer.__exit__(KeyError, KeyError(), None)
    assert list(tmp_path.iterdir()) == []


def corpus(folder: Path) -> list[Document]:
    documents = [
        Document(f"package{i % 7}", "1", "MIT", f"a{i}.py", language, f"text {i} with ünïcode\n")
        for i in range(40)
        for language in ("python", "go")
    ]
    for language in ("python", "go"):
        for split, wanted in (("train", range(30)), ("held_out", range(30, 40))):
            with DocumentWriter(folder / language / f"{split}.jsonl.zst") as writer:
                for document in documents:
                    if document.language == language and int(document.path[1:-3]) in wanted:
                        writer.write(document)
    Manifest().write(folder / "manifest.json")
    return documents


def test_a_corpus_is_packed_and_decodes_to_the_same_text(tmp_path: Path) -> None:
    documents = corpus(tmp_path / "corpus")
    seen: list[tuple[int, int, str]] = []
    paths = pack_corpus(tmp_path / "corpus", tmp_path / "shards", Letters(), lambda *step: seen.append(step), seed=3)
    assert [path.name for path in paths] == [
        "train-00000.shard",
        "held_out-go-00000.shard",
        "held_out-python-00000.shard",
    ]
    assert [step[2] for step in seen] == ["train", "held_out-go", "held_out-python"]
    found = {
        (Letters().decode(d.tokens), d.language, d.package)
        for p in paths
        for d in epoch(ShardReader([p], TOKENIZER), [p])
    }
    assert found == {(d.text, d.language, d.package) for d in documents}


def test_packing_is_reproducible(tmp_path: Path) -> None:
    corpus(tmp_path / "corpus")

    def digests(name: str) -> list[str]:
        paths = pack_corpus(tmp_path / "corpus", tmp_path / name, Letters(), seed=3)
        return [hashlib.sha256(path.read_bytes()).hexdigest() for path in paths]

    assert digests("first") == digests("second")


def test_shards_of_an_older_corpus_do_not_stay(tmp_path: Path) -> None:
    corpus(tmp_path / "corpus")
    (tmp_path / "shards").mkdir()
    for name in ("train-00007.shard", "held_out-rust-00000.shard", "mine.shard"):
        (tmp_path / "shards" / name).touch()
    paths = pack_corpus(tmp_path / "corpus", tmp_path / "shards", Letters())
    assert set((tmp_path / "shards").iterdir()) == {
        *paths,
        *(tmp_path / "shards" / name for name in ("mine.shard", "manifest.json")),
    }


def test_packing_nothing_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="no corpus here; build it first"):
        pack_corpus(tmp_path, tmp_path / "shards", Letters())
