import pytest

from lacuna_lsp.edit.filling import scope, stubs
from lacuna_model.syntax import language_for


def bodies(language: str, text: bytes) -> list[bytes]:
    known = language_for(name=language)
    assert known is not None
    return [text[region.start : region.end] for region in stubs(text, known, 0, len(text))]


@pytest.mark.parametrize(
    ("language", "text", "found"),
    [
        ("python", b"def f():\n    ...\ndef g():\n    'Doc.'\n    pass\ndef h():\n    return 1\n", [b"...", b"pass"]),
        ("python", b"def f():\n    # TODO: x\n    raise NotImplementedError('x')\n",
         [b"raise NotImplementedError('x')"]),
        ("typescript", b"class A { f() { // TODO\n } g() { throw new Error('not implemented'); } h() {} }",
         [b"\n ", b"throw new Error('not implemented');"]),
        ("rust", b"fn f() -> i32 { todo!() }\nfn g() { unimplemented!(\"x\") }", [b"todo!()", b'unimplemented!("x")']),
        ("go", b"package m\nfunc f() { panic(\"TODO\") }\nfunc g() {}\n", [b'panic("TODO")']),
        ("java", b"class A { int f() { // TODO write\n } void g() { run(); } }", [b"\n "]),
        ("csharp", b"class A { int F() { throw new NotImplementedException(); } }",
         [b"throw new NotImplementedException();"]),
    ],
)  # fmt: skip
def test_placeholder_bodies_are_found(language: str, text: bytes, found: list[bytes]) -> None:
    assert bodies(language, text) == found


def test_the_scope_is_the_class_or_function_around_an_offset() -> None:
    text = b"class A:\n    def f(self):\n        pass\n\ndef g():\n    pass\nx = 1\n"
    known = language_for(name="python")
    assert known is not None
    assert scope(text, known, text.index(b"self"))[0] == "A"
    assert scope(text, known, text.rindex(b"pass"))[0] == "g"
    assert scope(text, known, len(text) - 2) == ("", 0, len(text))
