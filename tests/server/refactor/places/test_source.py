import pytest
import yaml
from tests.server.refactor.bench import Bench

from lacuna_server.refactor.rewriting.refactoring import by_structure, by_syntax

# By language: a query for the nodes to wrap, and the template that wraps them.
WRAPS = {
    "python": ("[(if_statement) (for_statement) (function_definition) (expression_statement)]", "if x:\n    $MATCH"),
    **dict.fromkeys(
        ("javascript", "typescript", "tsx", "go"),
        ("[(if_statement) (expression_statement) (return_statement)]", "{\n    $MATCH\n}"),
    ),
    "rust": ("[(expression_statement) (let_declaration)]", "{\n    $MATCH\n}"),
    **dict.fromkeys(
        ("java", "c", "cpp", "csharp"), ("[(if_statement) (expression_statement)]", "if (x) {\n    $MATCH\n}")
    ),
    "ruby": ("[(method) (if) (class)]", "if x\n  $MATCH\nend"),
    "php": ("[(if_statement) (expression_statement) (echo_statement)]", "if (x) {\n    $MATCH\n}"),
    "bash": ("[(if_statement) (redirected_statement) (for_statement)]", "if x; then\n    $MATCH\nfi"),
    "lua": ("[(if_statement) (assignment_statement) (function_declaration)]", "do\n    $MATCH\nend"),
    "css": ("(rule_set)", "@media x {\n    $MATCH\n}"),
    "html": ("(element)", "<x>\n    $MATCH\n</x>"),
    "json": ("(object)", "[\n    $MATCH\n]"),
}
# By file name: a text with a statement to wrap, and a piece of it whose lines must keep their indentation.
KEPT = {
    "fstring.py": ('if a:\n    b = f"""p\n  {q\n  + 1}\n    r"""\n', "\n  {q\n  + 1}"),
    "docstring.py": ('def f():\n    """A.\n\n    B.\n    """\n', "\n    B.\n"),
    "continued.py": ("if a:\n    b = 'p\\\n    q'\n", "'p\\\n    q'"),
    "crlf.py": ('if a:\r\n    b = """p\r\n    q"""\r\n', '"""p\r\n    q"""'),
    "template.js": ("if (a) {\n    b(`p\n    ${c}\n    r`);\n}\n", "`p\n    ${c}\n    r`"),
    "comment.js": ("if (a) {\n    /* p\n    q */\n    b();\n}\n", "/* p\n    q */"),
    "type.ts": ("if (a) {\n    type A = `p\n    ${B}\n  q`;\n}\n", "`p\n    ${B}\n  q`"),
    "attribute.tsx": ('if (a) {\n    b(<p c="q\n    r"/>);\n}\n', '"q\n    r"'),
    "a.rs": ('fn f() {\n    g(r#"p\n    q"#, "r\n    s");\n}\n', 'r#"p\n    q"#, "r\n    s"'),
    "a.go": ("package a\n\nfunc f() {\n\tif a {\n\t\tb(`p\n\t\tq`)\n\t}\n}\n", "`p\n\t\tq`"),
    "raw.cpp": ('void f() {\n    if (a)\n        b(R"(p\n        q)");\n}\n', "p\n        q"),
    "continued.c": ('void f() {\n    if (a)\n        b("p\\\n        q");\n}\n', "p\\\n        q"),
    "A.java": ('class A { void f() {\n    b("""\n    p\n      q\\n\n    """);\n} }\n', "\n      q"),
    "verbatim.cs": ('class A { void F() {\n    b(@"p\n    q", $@"r {s}\n    t");\n} }\n', "\n    q"),
    "raw.cs": ('class A { void F() {\n    b("""\n    p\n    """);\n} }\n', '\n    p\n    """'),
    "heredoc.rb": ("if a\n  b(<<~A, <<B)\n  p #{q}\n  r\n  A\n  s\nB\nend\n", "\n  p #{q}\n  r\n  A\n  s\nB\n"),
    "command.rb": ("if a\n  b = `p\n  #{q}`\nend\n", "`p\n  #{q}`"),
    "comment.rb": ("if a\n=begin\np\n=end\n  b\nend\n", "\n=begin\np\n=end\n"),
    "heredoc.sh": ("if a; then\n    cat <<E\n    p $q\n    r\nE\nfi\n", "<<E\n    p $q\n    r\nE\n"),
    "string.sh": ("if a; then\n    b \"p\n    $q\n    r\" 's\n    t'\nfi\n", "p\n    $q\n    r\" 's\n    t"),
    "expansion.sh": ("if a; then\n    b ${c:-p\n    q}\nfi\n", "{c:-p\n    q}"),
    "heredoc.php": ("<?php\nif ($a) {\n    b(<<<A\n    p $q\n    r\n    A);\n}\n", "<<<A\n    p $q\n    r\n    A"),
    "nowdoc.php": ("<?php\nif ($a) {\n    b(<<<'A'\n    p\n    r\n    A);\n}\n", "<<<'A'\n    p\n    r\n    A"),
    "text.php": ("<?php\nif ($a) { ?>\n    p\n    <b>\n<?php }\n", "?>\n    p\n    <b>\n<?php"),
    "a.lua": ("if a then\n    b([==[p\n    q]==]) --[[ r\n    s]]\nend\n", "p\n    q]==]) --[[ r\n    s"),
    "pre.html": ("<pre>\n  p\n    q</pre>\n", "<pre>\n  p\n    q</pre>\n"),
    "script.html": ("<p>\n<script>\n  a = `p\n  q`\n</script>\n</p>\n", "\n  a = `p\n  q`\n"),
    "a.css": ("a {\n    /* p\n    q */\n    b: c;\n}\n", "/* p\n    q */"),
}


@pytest.mark.parametrize("name", KEPT)
def test_lines_in_strings_and_comments_keep_their_indentation(bench: Bench, name: str) -> None:
    language = bench.language(name)
    query, template = WRAPS[language]
    text, kept = KEPT[name]
    made = bench.apply(by_syntax(f"{query} @place", template, language), text, name)
    assert kept in text
    assert kept in made
    assert len(made.splitlines()) > len(text.splitlines())


def test_a_string_is_not_changed_if_its_code_is_dedented(bench: Bench) -> None:
    text = 'def f():\n    if a:\n        b("""p\n        q""")\n        c()\n'
    wanted = 'def f():\n    b("""p\n        q""")\n    c()\n'
    assert bench.apply(by_structure("if $C:\n    $$$B", "$$$B"), text) == wanted


def test_markup_text_without_significant_blanks_is_indented(bench: Bench) -> None:
    wrap = by_syntax("(return_statement) @place", "{\n  $MATCH\n}", "tsx")
    made = bench.apply(wrap, "return <p>\n  a\n</p>;\n", "a.tsx")
    assert made == "{\n  return <p>\n    a\n  </p>;\n}\n"


def test_yaml_strings_are_indented_and_keep_their_value(bench: Bench) -> None:
    text = 'a:\n  b: |\n    p\n      q\n  c: >-\n    r\n    s\n  d: "t\n    u"\n  e: v\n    w\n'
    query = "(stream (document (block_node (block_mapping (block_mapping_pair) @place))))"
    made = bench.apply(by_syntax(query, "x:\n  y:\n    $MATCH", "yaml"), text, "a.yaml")
    assert yaml.safe_load(made) == {"x": {"y": yaml.safe_load(text)}}
