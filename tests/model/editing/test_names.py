"""The names that texts define, in all languages and without a grammar."""

import pytest

from lacuna_model.editing.change import Asked, AskedChange
from lacuna_model.editing.names import is_configuration, names
from lacuna_model.languages.registry import language_for

TEXTS = {
    "a.py": ("import os\nX = 1\nclass A:\n    k: int = 1\n    def f(self):\n        y = 2\n", "X A A/k A/f"),
    "a.js": ("const a = 1;\nclass B { m() { let z; } }\nfunction f() {}\n", "a B B/m f"),
    "a.ts": ("interface I { y: number; f(): void }\nenum E { A }\ntype T = number;\n", "I I/y I/f E E/A T"),
    "a.go": ("package a\ntype S struct { x int }\nfunc (s *S) F() { y := 1 }\nconst K = 1\n", "S S/x S/F K"),
    "a.rs": ("struct S { x: i32 }\nimpl S { fn f(&self) { let y = 1; } }\nenum E { A }\n", "S S/x S/f E E/A"),
    "A.java": ("class A { int x; A() {} void f() { int y; } enum E { ONE } }\n", "A A/x A/A A/f A/E A/E/ONE"),
    "a.c": ("#define K 1\nstruct s { int x; };\nint f(struct s *a) { int y = 1; return y; }\nint g;\n", "K s s/x f g"),
    "a.cpp": ("namespace n { class A { int x; void f(); }; }\nvoid n::A::f() {}\n", "n n/A n/A/x n/A/f f"),
    "a.cs": ("class A { int x; int P { get; set; } void F() { int y = 1; } }\n", "A A/x A/P A/F"),
    "a.rb": ("module M\n  class A\n    K = 1\n    def f\n      b = 1\n    end\n  end\nend\n", "M M/A M/A/K M/A/f"),
    "a.php": ("<?php\nclass D { const K = 1; public $x; function f() { $y = 1; } }\n", "D D/K D/x D/f"),
    "a.lua": ("local x = 1\nlocal function f() local y = 1 end\nfunction M.g() end\n", "x f M.g"),
    "a.kt": ("class A {\n  val y = 1\n  fun f() { val z = 1 }\n}\nobject O\n", "A A/y A/f O"),
    "a.sh": ("X=1\nf() {\n  local y=1\n}\n", "X f"),
    "a.css": (".a { color: red }\n#b { margin: 0 }\n", ".a #b"),
    "a.json": ('{"a": {"b": 1}}', "a a/b"),
    "a.yaml": ("a:\n  b: 1\nc: 2\n", "a a/b c"),
    "a.toml": ("a = 1\n[t]\nb = 2\n", "a t t/b"),
    "a.ini": ("; s = 1\n[s]\na = 1\nb: 2\n", "s s/a s/b"),
    ".env": ("export A=1\nB=2\n", "A B"),
    "Makefile": ("CC = gcc\nall: a\n\tgcc a\nclean:\n\trm a\n", "CC all clean"),
    "a.swift": ("func area(r: Int) -> Int {\n  return r\n}\nclass Square {\n}\n", "area Square"),
    "a.ex": ("defmodule A do\n  def f(x) do\n    x\n  end\nend\n", "A f"),
}


@pytest.mark.parametrize("path", TEXTS)
def test_names_are_found_with_what_is_around_them(path: str) -> None:
    text, wanted = TEXTS[path]
    found = names(text.encode(), 0, len(text.encode()), language_for(path), keyed=is_configuration(text))
    assert ["/".join(part for part in (*one.around, one.text) if part) for one in found] == wanted.split()


def test_names_of_a_function_that_reaches_beyond_the_bytes_are_local() -> None:
    text = b"def f():\n    x = 1\n    return x\n"
    (one,) = names(text, 9, 19, language_for("a.py"))
    assert (one.text, one.local, one.until) == ("x", True, len(text) - 1)


def test_lines_end_as_in_editors() -> None:
    text = "# \u2028\f\n[a]\nx = 1\n[b]\ny = 1\n".encode()
    start = text.index(b"[a]")
    assert [one.text for one in names(text, start, text.index(b"[b]"), None, keyed=True)] == ["a", "x"]


def test_the_names_beside_the_lines_are_not_those_of_the_lines() -> None:
    text = b"[a]\nx = 1\n[b]\ny = 1\n"
    one = AskedChange(text, 0, 10, Asked(""), "a.ini")
    assert [name.text for name in one.names] == ["a", "x"]
    assert [(*name.around, name.text) for name in one.outside] == [("b",), ("b", "y")]
