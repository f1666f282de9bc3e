"""The corpus is built from its package list, filtered, deduplicated, split and recorded."""

import gzip
import json
from itertools import islice
from pathlib import Path
from random import Random

import msgspec
import pytest
from tests.training.corpora import Shelf, corpus

from training.corpus import Benchmarks, Duplicates, build_packages, sketch
from training.packages import CorpusError, Package, Role, read_packages
from training.registries import PyPI
from training.stored import Document, DocumentWriter, Manifest, read_documents
from training.stored import texts as drawn


def module(name: str, functions: int = 12) -> str:
    """Code with `name` all over it, so that no two modules resemble each other; digits would make it data."""
    name = name.translate(str.maketrans("0123456789", "qrstuvwxyz"))
    lines = (f"def {name}_{chr(97 + i)}({name}):\n    return {name}.{chr(97 + i)}_{name}" for i in range(functions))
    return "\n\n".join(lines) + "\n"


def packages(**roles: Role) -> list[Package]:
    return [Package("shelf", name, "1", role) for name, role in roles.items()]


def texts(path: Path) -> dict[str, str]:
    return {f"{d.package}/{d.path}": d.text for d in read_documents(path)}


def test_a_corpus_is_built_from_a_list_and_recorded_in_a_manifest(shelf: Shelf, tmp_path: Path) -> None:
    shelf.add("alpha", {"alpha/one.py": module("one"), "alpha/tiny.py": "x = 1\n", "alpha/_vendor/v.py": module("v")})
    shelf.add("beta", {"beta/two.py": module("two"), "beta/copy.py": module("one")})
    shelf.add("gamma", {"gamma.py": module("three")}, licence="GPL-3.0")
    done: list[None] = []
    manifest = build_packages(
        packages(beta=Role.TRAIN, gamma=Role.TRAIN, delta=Role.TRAIN, alpha=Role.HELD_OUT),
        tmp_path / "out",
        sources={"shelf": shelf},
        advance=lambda: done.append(None),
    )
    # The copy of a held-out file leaves the training set.
    assert texts(tmp_path / "out/python/held_out.jsonl.zst") == {"alpha/alpha/one.py": module("one")}
    assert texts(tmp_path / "out/python/train.jsonl.zst") == {"beta/beta/two.py": module("two")}
    assert {record.name: record.dropped for record in manifest.packages} == {
        "alpha": {"too small": 1, "vendored": 1},
        "beta": {"duplicate": 1},
        "gamma": {"licence of the package": 1},
        "delta": {"not published": 1},
    }
    assert manifest.totals["python/train"].bytes == len(module("two"))
    assert msgspec.json.decode((tmp_path / "out/manifest.json").read_bytes(), type=Manifest) == manifest
    assert len(done) == 4


def test_worker_processes_build_the_same_corpus(shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("alpha", "beta", "gamma", "delta"):
        shelf.add(name, {f"{i}.py": module(f"{name}{i}") for i in range(4)} | {"same.py": module("same")})
    # The worker processes know only the real registry, so this process fetches the archives.
    registry = PyPI()
    monkeypatch.setattr(PyPI, "download", lambda self, package, folder: shelf.download(package, folder))
    chosen = [Package("pypi", name, "1", Role.TRAIN) for name in ("alpha", "beta", "none", "gamma", "delta")]
    for workers in (0, 2):
        build_packages(chosen, tmp_path / str(workers), sources={"pypi": registry}, workers=workers)
    alone, together = ((tmp_path / name / "python/train.jsonl.zst").read_bytes() for name in ("0", "2"))
    assert alone == together
    alone, together = ((tmp_path / name / "manifest.json").read_bytes() for name in ("0", "2"))
    assert alone == together


def test_benchmarks_come_from_files_and_from_packages(shelf: Shelf, tmp_path: Path) -> None:
    problems = [
        {"prompt": "def beta_problem(): return 'the quick brown fox jumps over that lazy dog today'"},
        {"prompt": "def other_problem(): return 'some honest words nobody else would ever write down'"},
    ]
    (tmp_path / "dev.jsonl.gz").write_bytes(gzip.compress(f"{json.dumps(problems[0])}\n".encode()))
    shelf.add("alpha", {"one.py": module("one"), "a.py": module("a") + problems[0]["prompt"]})
    shelf.add("judge", {"data/problems.jsonl": json.dumps(problems[1])})
    shelf.add("beta", {"b.py": module("b") + problems[1]["prompt"]})
    manifest = build_packages(
        packages(alpha=Role.TRAIN, beta=Role.TRAIN, judge=Role.BENCHMARK),
        tmp_path / "out",
        sources={"shelf": shelf},
        benchmark_files=[tmp_path / "dev.jsonl.gz"],
    )
    assert [record.dropped for record in manifest.packages] == [{"benchmark problem": 1}, {"benchmark problem": 1}]
    assert list(texts(tmp_path / "out/python/train.jsonl.zst")) == ["alpha/one.py"]


def test_a_benchmark_that_is_missing_stops_the_build(shelf: Shelf, tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="judge 1: this benchmark is not published any more"):
        build_packages(packages(judge=Role.BENCHMARK), tmp_path / "out", sources={"shelf": shelf})


def test_tests_are_at_most_their_share(shelf: Shelf, tmp_path: Path) -> None:
    code = {f"a{i}.py": module(f"code{i}") for i in range(40)}
    tests = {f"tests/test_{i}.py": module(f"check{i}", 6) for i in range(80)}
    shelf.add("alpha", code | tests)
    shelf.add("beta", {path: text.replace("check", "other") for path, text in tests.items()})
    manifest = build_packages(packages(alpha=Role.TRAIN, beta=Role.TRAIN), tmp_path / "out", sources={"shelf": shelf})
    kept = texts(tmp_path / "out/python/train.jsonl.zst")
    share = sum(len(text) for path, text in kept.items() if "/tests/" in path) / sum(map(len, kept.values()))
    assert 0.12 < share <= 0.15
    assert manifest.packages[0].dropped == {"over the share of tests": 120 - len(kept)}
    assert manifest.packages[1].dropped == {"over the share of tests": 80}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[pypi", "not valid: Expected ']'"),
        ("pypi = 1", "Expected `object`, got `int` - at "),
        ('[pypi]\nother = ["a==1"]', "lists train, held-out, benchmark of name==version; .* value 'other'"),
        ('[pypi]\ntrain = ["a>=1"]', "'a>=1' is not of the form name==version"),
        ('[pypi]\ntrain = ["a==1"]\nheld-out = ["A==2"]', "A is listed twice"),
    ],
)
def test_a_wrong_package_list_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "packages.toml"
    path.write_text(text)
    with pytest.raises(CorpusError, match=rf"packages\.toml: .*{message}"):
        read_packages(path)


def test_damaged_corpus_files_are_named(tmp_path: Path) -> None:
    path = tmp_path / "train.jsonl.zst"
    with DocumentWriter(path) as writer:
        writer.write(Document("p", "1", "MIT", "a.py", "python", "text" * 1000))
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2] + b"\0\0\0")
    with pytest.raises(CorpusError, match=r"train\.jsonl\.zst: the corpus file is damaged"):
        list(read_documents(path))
    with pytest.raises(CorpusError, match="none"):
        list(read_documents(tmp_path / "none"))


def test_all_packages_and_languages_are_drawn_without_end(tmp_path: Path) -> None:
    rng = Random(3)
    go = [f"{number:03}" + "".join(rng.choices("abcdefgh", k=500)) for number in range(400)]
    path = corpus(tmp_path, go=go, python=["x" * 500])
    found = [text[:3] for text in islice(drawn(path, "train", 0), 1000)]
    share = found.count("xxx") / len(found)
    assert 0 < share < 0.1
    numbers = [int(one) for one in found if one != "xxx"]
    assert min(numbers[:50]) < 100
    assert max(numbers[:50]) >= 300
    assert len(set(numbers)) > 300


def test_a_folder_without_a_corpus_is_reported(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="python -m training corpus"):
        next(drawn(tmp_path, "train", 0))
    short = corpus(tmp_path / "short", go=["x"])
    with pytest.raises(CorpusError, match="no text of"):
        next(drawn(short, "train", 0))


def numbered(words: int, start: int = 0) -> str:
    return "\n".join(f"def name_{i}(argument_{i}):\n    return argument_{i} + {i}" for i in range(start, start + words))


def test_copies_are_found_whatever_their_spacing_and_others_are_not() -> None:
    duplicates = Duplicates()
    assert duplicates.accepts(sketch(numbered(200)))
    assert not duplicates.accepts(sketch(numbered(200)))
    assert not duplicates.accepts(sketch(numbered(200).replace("    ", "\t") + "\n\n"))
    assert not duplicates.accepts(sketch(numbered(200) + "\nextra = 1\n"))
    assert duplicates.accepts(sketch(numbered(200, start=500)))
    assert duplicates.accepts(sketch(numbered(100) + "\n" + numbered(100, start=900)))


def test_a_solution_in_a_gap_is_joined_with_its_surroundings() -> None:
    benchmarks = Benchmarks()
    before, after = "alpha beta gamma delta epsilon ", "eta theta iota kappa"
    benchmarks.add({"prompt": before, "canonical_solution": "zeta ", "suffix": after})
    assert benchmarks.contaminates("alpha beta gamma delta epsilon zeta eta theta iota kappa")


def test_the_task_sentences_of_mbpp_are_recognised() -> None:
    order = "Write a python function to reverse a list.\n"
    assert Benchmarks().contaminates(order * 3)
    assert not Benchmarks().contaminates(order)


def test_a_damaged_problem_file_is_named() -> None:
    with pytest.raises(CorpusError, match=r"c\.jsonl\.gz"):
        Benchmarks().read("c.jsonl.gz", b"not gzip")
