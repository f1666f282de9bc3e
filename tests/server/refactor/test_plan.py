import msgspec

from lacuna_server.refactor.plan import FileEdits, Plan, PlannedEdit, sha256

ORIGINAL = "\ufeffé = 1\r\nb = 2\r\n".encode()


def file(*edits: PlannedEdit) -> FileEdits:
    return FileEdits("code.py", sha256(ORIGINAL), None, edits)


ONE = PlannedEdit(8, 9, "one", "a")
TWO = PlannedEdit(15, 16, "two", "b")
BAD = PlannedEdit(0, 3, "", "c", "failed", "nothing fits")
UNSURE = PlannedEdit(20, 20, "x", "d", "unsure", "too low", confidence=0.1)
IMPORT = PlannedEdit(3, 3, "import x\r\n", "import", support=True)


def test_every_byte_outside_the_edits_stays() -> None:
    assert file(ONE, TWO).rewritten(ORIGINAL).decode() == "\ufeffé = one\r\nb = two\r\n"
    assert file(BAD, TWO).rewritten(ORIGINAL).decode() == "\ufeffé = 1\r\nb = two\r\n"


def test_support_edits_are_made_only_with_other_edits() -> None:
    assert file(IMPORT, TWO).ready == (IMPORT, TWO)
    assert file(IMPORT, UNSURE).ready == ()
    assert file(IMPORT).rewritten(ORIGINAL) == ORIGINAL


def test_a_plan_counts_its_edits_and_can_be_sent_as_json() -> None:
    plan = Plan("title", (file(BAD, ONE, UNSURE), file(IMPORT), file(IMPORT, TWO)), ("code.py:1:0: why",))
    assert (plan.num_ready, plan.num_failed, plan.num_unsure) == (2, 1, 1)
    assert [file.edits for file in plan.ready.files] == [(ONE,), (IMPORT, TWO)]
    assert msgspec.json.decode(msgspec.json.encode(plan), type=Plan) == plan
