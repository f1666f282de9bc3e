"""A renamed variable is renamed where it is the same one: ``@total`` in the texts, of which the first is the change.

Other names ``total`` are other variables, members or keys.
"""

import pytest

from lacuna_model.languages.registry import require_language
from lacuna_model.next_edit.changes import RecentChange, TokenizedText
from lacuna_model.next_edit.following import Candidate, applied, candidates, chosen
from lacuna_model.next_edit.scope_rules import RULES
from lacuna_model.text.diff import Hunk

OLD, NEW = "total", "amount"


def renamed(marked: str, language: str, *, by: tuple[str, str] = (OLD, NEW)) -> RecentChange:
    """The change of the first marked line, in which all marked names are renamed."""
    lines = marked.splitlines(keepends=True)
    row = next(row for row, line in enumerate(lines) if f"@{by[0]}" in line)
    old = [line.replace(f"@{by[0]}", by[0]) for line in lines]
    new = [*old[:row], lines[row].replace(f"@{by[0]}", by[1]), *old[row + 1 :]]
    hunk = Hunk(row, row + 1, row, row + 1)
    return RecentChange(TokenizedText("".join(old)), TokenizedText("".join(new)), hunk, require_language(language))


def code(found: list[Candidate]) -> list[Candidate]:
    return [one for one in found if one.kind == "code"]


def followed(marked: str, language: str) -> str:
    change = renamed(marked, language)
    return applied(change.new.text, code(chosen(candidates(change, change.new))))


PYTHON = {
    "another function has its own": """
def f(rows):
    @total = 0
    for row in rows:
        @total += row
    return @total
def g(rows):
    total = 1
    for row in rows:
        total += row
    return total
""",
    "a parameter, a keyword argument, a default": """
def f(@total, rest=1):
    return @total + rest
def g(total=2, other=total):
    return f(@total=total) + h(total=total)
x = f(1, @total=3)
""",
    "a closure sees it, a nested function with its own does not": """
def f(@total):
    def inner(row):
        return row + @total
    def apart(total):
        return total
    return inner(@total) + apart(1), lambda total: total, lambda row: row + @total
""",
    "nonlocal and global": """
@total = 0
def f():
    global @total
    @total += 1
    def g():
        total = 2
        def h():
            nonlocal total
            total += 1
def i():
    return @total
""",
    "comprehensions": """
def f(rows):
    @total = len(rows)
    a = [total for total in rows]
    b = {row: @total for row in rows}
    return a, b, sum(total for total in rows if total), @total
""",
    "members, keys and modules are others": """
def f(order, module):
    @total = order.total
    module.total(@total)
    self.total = dict(total=@total)
    return {"a": @total}
""",
    "a class attribute and its methods": """
class A:
    @total = 0
    def add(self, total):
        self.@total += total
        return cls.@total
class B:
    total = 1
    def add(self):
        return self.total + A.@total + B.total
def f(total):
    return total
""",
    "an import under another name": """
from ledger import total as @total
from order import total as other
def f(rows):
    return @total(rows)
def g(rows):
    from shop import total
    return total(rows)
""",
    "with, except, for, match, walrus": """
def f(rows):
    with open(rows) as @total:
        pass
    return @total
def g(rows):
    with open(rows) as total:
        return total
def h(rows):
    try:
        pass
    except OSError as total:
        return total
    for total, other in rows:
        print(total)
def i(rows):
    match rows:
        case [total, *rest]:
            return total
    if (total := len(rows)) > 1:
        return total
""",
    "keywords of a pattern": """
def f(row):
    @total = row.first()
    match row:
        case Order(total=other):
            return other, @total
""",
    "f-strings are code": """
def f(rows):
    @total = len(rows)
    print(f"{@total:>{@total}}")
def g(total):
    print(f"{total}")
""",
}
OTHERS = {
    "javascript": {
        "blocks": """
function f(rows) {
  let @total = 0;
  for (const row of rows) { @total += row; }
  if (rows) { const total = 1; show(total); }
  rows.map((total) => total + 1);
  rows.map((row) => row + @total);
  return @total;
}
function g() { let total = 2; return total; }
""",
        "var is of the function": """
function f(rows) {
  if (rows) { var @total = 0; }
  for (let total = 1; total < 2; total++) { show(total); }
  return @total;
}
function g() { return function () { var total = 1; return total; }; }
""",
        "destructuring": """
function f({ a: @total, b }) {
  return @total + b.total;
}
function g({ total, ...rest }) {
  return total + rest.total;
}
const h = ([total]) => total, i = ({ a: [total = 1] }) => total;
""",
        "imports": """
import @total from "./total";
import { total as other } from "./other";
show(@total, other.total);
function g(total) { return total; }
""",
        "classes": """
class A {
  @total = 1;
  add(total) { this.@total += total; }
}
class B {
  total = 2;
  add() { return this.total; }
}
""",
    },
    "tsx": {
        "elements and attributes": """
function A() {
  const @total = useTotal();
  show(@total);
  const a = <total onSubmit={@total.submit}>{@total.x}</total>;
  return <Input total={@total} a={<total/>} b={render(<Input total={@total.x}/>)}/>;
}
""",
        "the attributes of a component": """
const Order = ({ @total, rows }) => <p>{@total}{rows}</p>;
function B() { return <div><Order @total={1}/><Other total={2}/></div>; }
""",
    },
    "typescript": {
        "parameters": """
function f(@total: number, rest?: number): number {
  const g = (total: string): string => total;
  return @total + (rest ?? @total);
}
interface Order { total: number }
function h(total?: number) { return total; }
""",
    },
    "go": {
        "an inner declaration is another variable": """
func f(rows []int) int {
	@total := 0
	for _, row := range rows {
		@total += row
	}
	if total := len(rows); total > 1 {
		use(total)
	}
	{
		total := @total + 1
		use(total)
	}
	return @total
}

func g(total int) int { return total }

type order struct{ total int }

func (o *order) m() order { return order{total: o.total} }
""",
        "assigned again with a new one beside": """
func f() error {
	@total, err := a()
	@total, other := b()
	func(total int) { use(total) }(1)
	return use(@total, err, other)
}
""",
    },
    "c": {
        "blocks, parameters and fields": """
int f(int *@total, struct order *o)
{
    for (int i = 0; i < *@total; i++) {
        int total = o->total;
        use(total);
    }
    return *@total;
}

int g(int total) { return total; }
int h(int total);
""",
        "designators": """
int f(int @total)
{
    struct order a = { .total = @total };
    return use(a, offsetof(struct order, total)) + @total;
}
""",
    },
    "cpp": {
        "lambdas and loops": """
int f(const int &@total, std::vector<int> rows) {
    auto g = [&](int row) { return row + @total; };
    auto h = [](int total) { return total; };
    for (auto &total : rows) { use(total); }
    try { } catch (const error &total) { use(total); }
    return g(@total);
}
template <typename T> T h(T total) { return total; }
""",
    },
    "java": {
        "elements of annotations": """
class A {
    int f(int @total) {
        @Checked(total = 1) int a = @total;
        return a + @total;
    }
}
""",
        "locals, lambdas and fields": """
class A {
    int f(int @total) {
        Fn g = row -> row + @total;
        Fn h = total -> total;
        for (Order order : orders) { use(order.total, @total); }
        return @total;
    }
    int g() { int total = 1; return total; }
}
""",
        "a field": """
class A {
    private int @total = 1;
    A(int total) { this.@total = total; }
    int f() { return @total; }
}
class B {
    private int total = 1;
    int f() { return this.total + total; }
}
""",
    },
    "rust": {
        "a second let is another variable": """
fn f(rows: &[i32]) -> i32 {
    let @total = 0;
    let g = |row| row + @total;
    let h = |total: i32| total;
    let total = @total + 1;
    if let Some(total) = rows.first() { use_it(total); }
    total
}
fn g(total: i32) -> i32 { match total { total if total > 1 => total, _ => 1 } }
""",
        "fields in patterns": """
fn f(@total: &str) -> T {
    let T { total: other, .. } = g(&@total);
    match other { T { total: ref b, .. } => use_it(b, @total) }
    T { total: @total }
}
""",
    },
    "csharp": {
        "names of arguments and members": """
class A {
    int F(int @total) {
        Use(total: @total, rest: new A { rest = F(@total: 1) });
        var a = new { total = @total };
        return a with { total = @total };
    }
    A(int total) { }
}
""",
        "locals and lambdas": """
class A {
    int F(int @total) {
        Func<int, int> g = row => row + @total, h = total => total;
        foreach (var total in rows) { Use(total); }
        return @total;
    }
    int G(int total) { return total + order.total; }
}
""",
    },
    "kotlin": {
        "locals and lambdas": """
fun f(@total: Int): Int {
    val g = { total: Int -> total }
    for (row in rows) { use(row, @total) }
    return @total + order.total
}
fun g(): Int { val total = 1
    return total }
""",
        "a parameter": """
fun f(@total: Int): Int {
    return @total
}
val x = f(@total = 1) + h.g(total = 2)
""",
    },
    "lua": {
        "locals": """
local function f(@total)
  for _, row in ipairs(rows) do use(row, @total, row.total) end
  local g = function(total) return total end
  return g(@total)
end
local function g() local total = 1; return total end
""",
    },
    "php": {
        "functions": """<?php
function f($@total) {
    $g = function ($total) { return $total; };
    return $g($@total) + $this->total;
}
function g() { $total = 1; return $total; }
""",
        "a parameter": """<?php
class Order {
    public function __construct(int $@total) { $this->rows = [$@total]; }
}
$a = make(new Order(@total: 1), total: 2);
""",
    },
    "ruby": {
        "methods and blocks": """
def f(@total)
  rows.each { |row| use(row, @total) }
  rows.each { |total| use(total) }
  @total + order.total
end

def g
  total = 1
  total + 1
end
""",
        "keys, symbols and members": """
def f(row)
  @total = row.first
  Order.create(total: @total)
  Order.create(:total => @total, "total": 1, @total => 2)
  show(:total, $total, { total: @total })
end
""",
        "a parameter": """
class Order
  def initialize(@total:)
    super(total: @total)
  end
  def add(rows, total:) = total
end
[Order.new(@total: 1), Order.create(total: 2), add(1, total: 3)]
""",
    },
    "bash": {
        "local variables": """
f() {
  local @total=1
  echo "$@total ${@total}"
}
g() {
  local total=2
  echo "$total"
}
""",
    },
}
CASES = [("python", name) for name in PYTHON] + [(lang, name) for lang, own in OTHERS.items() for name in own]


@pytest.mark.parametrize(("language", "name"), CASES)
def test_the_same_variable_is_renamed_and_no_other(language: str, name: str) -> None:
    marked = (OTHERS | {"python": PYTHON})[language][name]
    assert followed(marked, language) == marked.replace(f"@{OLD}", NEW)


def test_the_table_has_only_kinds_and_fields_of_the_grammars() -> None:
    """A misspelt kind would be no error, and never match."""
    for rules in RULES.values():
        grammars = [require_language(name).grammar() for name, own in RULES.items() if own is rules]
        kinds = {one.node_kind_for_id(number) for one in grammars for number in range(one.node_kind_count)}
        fields = {one.field_name_for_id(number) for one in grammars for number in range(1, one.field_count + 1)}
        places = {*rules.declares, *rules.outside, *rules.through, *rules.members, *rules.fields, *rules.keywords}
        places |= rules.tags
        plain = {*rules.scopes, *rules.keys, *rules.closed, *rules.hoisted, *rules.passes, *rules.names}
        places |= {kind if "." in kind else f"{kind}." for kind in plain | rules.shorthand}
        parts = [place.partition(".") for place in places]
        assert {kind for kind, _, _ in parts} - kinds == set()
        assert {field for _, _, field in parts if field} - fields == set()
        assert rules.functions | rules.classes <= rules.scopes


@pytest.mark.parametrize(
    ("language", "marked", "then"),
    [
        ("javascript", "let @total = 1;\nreturn { total, other: @total };\n",
         "return { total: amount, other: amount };\n"),
        ("typescript", "let @total = 1;\nconst { total: a } = { total };\n",
         "const { total: a } = { total: amount };\n"),
        ("rust", "fn f(@total: i32) -> P {\n    P { total, other: @total }\n}\n",
         "    P { total: amount, other: amount }\n}\n"),
    ],
)  # fmt: skip
def test_the_key_of_a_shorthand_keeps_its_name(language: str, marked: str, then: str) -> None:
    assert followed(marked, language).split("\n", 1)[1] == then


def test_no_variable_of_another_file_is_a_local_one() -> None:
    change = renamed("def f(@total):\n    return @total\n", "python")
    other = TokenizedText("def g(total):\n    return total\n\n\nprint('total', total)\n")
    assert candidates(change, other, where="elsewhere") == []
    change = renamed("def @total(rows):\n    return rows\n", "python")
    text = "from ledger import total\n\n\ndef g(total):\n    return total\n\n\nshow(total(1))\n"
    found = candidates(change, TokenizedText(text), where="elsewhere")
    assert [text.count("\n", 0, one.place.start) for one in found] == [0, 7]


def test_in_a_later_text_the_places_that_are_left_are_found() -> None:
    marked = PYTHON["another function has its own"]
    change = renamed(marked, "python")
    done = marked.replace("        @total += row", f"        {NEW} += row").replace(f"@{OLD}", OLD)
    later = TokenizedText(done.replace(f"    {OLD} = 0", f"    {NEW} = 0"))
    assert applied(later.text, chosen(candidates(change, later, where="later"))) == marked.replace(f"@{OLD}", NEW)


def test_a_name_in_a_string_or_a_comment_is_of_another_kind_than_the_code_beside() -> None:
    text = (
        "def f(@total_sum):\n    # total_sum is known\n    print('total_sum', total_sum)\n    return total_sum\n\n\n"
        "def g(total_sum):\n    # total_sum is known\n    print('total_sum', total_sum)\n"
    )
    change = renamed(text, "python", by=("total_sum", "amount"))
    found = chosen(candidates(change, change.new), 0.1)
    rows = [(change.new.text.count("\n", 0, one.place.start), one.kind) for one in found]
    assert rows == [(1, "comment"), (2, "string"), (2, "code"), (3, "code")]


def test_a_place_that_has_a_name_in_a_string_too_is_of_that_kind() -> None:
    line = '    log(total_sum, "total_sum is x")\n'
    change = renamed(
        f"def f(total_sum):\n{line.replace('total', '@total')}{line}", "python", by=("total_sum", "amount")
    )
    assert chosen(candidates(change, change.new))[-1].kind == "string"


def test_a_text_that_cannot_be_parsed_has_no_scopes_and_its_places_are_found_as_without() -> None:
    marked = "@total_sum = 1\n<a {{b:>c:d(e f)\nshow(@total_sum)\n"
    change = renamed(marked, "tsx", by=("total_sum", "amount"))
    assert applied(change.new.text, chosen(candidates(change, change.new))).endswith("show(amount)\n")


def test_a_plain_word_is_renamed_in_no_string_or_comment() -> None:
    change = renamed(
        "def f(@http):\n    # by http\n    return @http.get('http://a')\n", "python", by=("http", "httpClient")
    )
    found = chosen(candidates(change, change.new), 0.0)
    assert applied(change.new.text, found).endswith("    # by http\n    return httpClient.get('http://a')\n")


def test_the_own_function_is_found_behind_many_others() -> None:
    others = "".join(f"def f{n}(total):\n    return total + {n}\n\n\n" for n in range(300))
    assert followed(f"{others}def g(@total):\n    return @total\n", "python").endswith("    return amount\n")


def test_another_variable_in_place_of_one_renames_no_declaration() -> None:
    text = "def f({0}):\n    address = {0}\n    show(@{0})\n    keep(@{0})\n".format("total")
    change = renamed(text, "python", by=("total", "address"))
    found = chosen(candidates(change, change.new), 0.1)
    assert "def f(total):\n    address = total\n" in applied(change.new.text, found)


def test_the_name_of_a_type_is_no_string() -> None:
    text = "const a: @string = one();\nconst b: @string = two();\n"
    change = renamed(text, "typescript", by=("string", "number"))
    assert {one.kind for one in candidates(change, change.new)} == {"code"}


def test_a_member_of_ruby_is_no_local_variable() -> None:
    old = "def f(total)\n  @total = total\n  @total + total\nend\n"
    new = old.replace("f(total)", "f(amount)")
    change = RecentChange(TokenizedText(old), TokenizedText(new), Hunk(0, 1, 0, 1), require_language("ruby"))
    then = "def f(amount)\n  @total = amount\n  @total + amount\nend\n"
    assert applied(new, chosen(candidates(change, change.new))) == then
