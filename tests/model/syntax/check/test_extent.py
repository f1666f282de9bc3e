"""How much of a file a gap's syntax depends on."""

import pytest
from tests.model.syntax.drive import require

from lacuna_model.syntax.check.extent import find_extents

GAP = "<>"
LINKAGE = '#ifdef __cplusplus\nextern "C" {\n#endif\n\n'
C = "int f(int a) {\n  return a;\n}\n\n"


def parsed_part(name: str, marked: str) -> str:
    """The part of a text that is parsed for the gap at its mark."""
    start = marked.encode().index(GAP.encode())
    text = marked.replace(GAP, "").encode()
    extents, _ = find_extents(text, [(start, start)], require(name))
    (extent,) = extents
    return text[extent.begin : extent.stop].decode()


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        pytest.param("c", "#ifndef A_H\n#define A_H\n\n", "\n#endif\n", id="include guard"),
        pytest.param("cpp", "#ifdef A\n\n", "\n#elif B\n\nint b;\n\n#endif\n", id="branch"),
        pytest.param("cpp", "namespace a {\nnamespace b {\n\n", "\n}  // b\n}  // a\n", id="namespaces"),
        pytest.param("cpp", LINKAGE, LINKAGE.replace('extern "C" {', "}"), id="linkage"),
    ],
)
def test_declarations_are_parsed_without_the_guard_or_namespace_around_them(name: str, before: str, after: str) -> None:
    found = parsed_part(name, before + C * 40 + "int g;\n<>\nint h;\n\n" + C * 40 + after)
    assert "int g;\n\nint h;" in found
    assert len(found) < len(C) * 4


@pytest.mark.parametrize(
    ("name", "lead"),
    [("cpp", "template <typename T>\n"), ("cpp", "template <typename T,\n          typename U>\n"), ("java", "@A\n")],
)
def test_a_template_head_or_annotation_is_not_cut_off_from_its_class(name: str, lead: str) -> None:
    unit = f"{lead}class A {{\n}}{';' if name == 'cpp' else ''}\n\n"
    found = parsed_part(name, unit * 20 + "<>\n" + unit * 20)
    assert found.count("class") == found.count(lead) > 0
    assert found.index(lead) < found.index("class")


def test_with_a_guard_that_is_not_ended_an_extent_begins_with_the_file() -> None:
    extents, _ = find_extents(b"#ifdef A\n\nint a;\n\n\nint b;\n", [(17, 17)], require("c"))
    assert all(extent.begin == 0 for extent in extents)


def test_an_extent_ends_after_a_raw_string_that_a_gap_opens() -> None:
    before, after = 'fn f() {\n    g(r"a");\n', '\nName\n  b\n"#);\n}\n\n' + "fn h() {}\n\n" * 400
    extents, _ = find_extents((before + after).encode(), [(len(before), len(before))], require("rust"))
    assert '"#);\n}' in (before + after)[extents[0].begin : extents[0].stop]


@pytest.mark.parametrize("last", ["int g(void)\n{\n  b();\n}\n", "int g(void) {\n  b();\nend:\n  c();\n}\n"])
def test_an_extent_ends_after_a_function_whose_brace_or_label_begins_a_line(last: str) -> None:
    before, after = "int x;\n\nint f(void)\n{\n  a();\n", "}\n\n" + last
    text = before + after + "\nint y;\n" * 400
    extents, _ = find_extents(text.encode(), [(len(before), len(before))], require("c"))
    assert text[extents[0].begin : extents[0].stop].strip() == (before + after).strip()


def test_extents_are_small_and_grow_out_of_literals() -> None:
    body = "".join(f"def f{i}(x):\n    return x + {i}\n\n\n" for i in range(200))
    place = body.index("return x + 100")
    extents, rest = find_extents(body.encode(), [(place, place)], require("python"))
    assert rest is not None
    assert not rest.root_node.has_error
    assert extents[0].stop - extents[0].begin < 200
    listing = "data = {\n" + "".join(f"'{i}': [\n{i}],\n" for i in range(300)) + "}\n"
    text = ("a = 1\n" * 50 + listing + "b = 2\n" * 50).encode()
    place = text.index(b"'150'")
    extents, _ = find_extents(text, [(place, place)], require("python"))
    assert (
        text[extents[0].begin : extents[0].stop].startswith(b"a = 1\ndata")
        or b"data = {" in text[extents[0].begin : extents[0].stop]
    )
