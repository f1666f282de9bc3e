"""Copies and evaluation problems are recognised."""

import pytest

from training.packages import CorpusError
from training.sifting import Benchmarks, Duplicates, sketch


def module(words: int, start: int = 0) -> str:
    return "\n".join(f"def name_{i}(argument_{i}):\n    return argument_{i} + {i}" for i in range(start, start + words))


def test_copies_are_found_whatever_their_spacing_and_others_are_not() -> None:
    duplicates = Duplicates()
    assert duplicates.accepts(sketch(module(200)))
    assert not duplicates.accepts(sketch(module(200)))
    assert not duplicates.accepts(sketch(module(200).replace("    ", "\t") + "\n\n"))
    assert not duplicates.accepts(sketch(module(200) + "\nextra = 1\n"))
    assert duplicates.accepts(sketch(module(200, start=500)))
    assert duplicates.accepts(sketch(module(100) + "\n" + module(100, start=900)))


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
