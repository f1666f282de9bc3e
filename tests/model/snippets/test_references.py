from lacuna_model.snippets.references import Reference, references


def found(text: str, row: int, language: str = "python") -> dict[str, Reference]:
    return {f"{one.qualifier}.{one.name}".lstrip("."): one for one in references(text.split("\n"), row, language)}


CODE = '''\
far = Other()

def pay(account: Account, amount):
    """Pay with a Docstring."""
    ledger.note(amount)  # as Comment says
    name = "Quoted()"
    account.
    total = later

def next_one(): pass
'''


def test_the_names_used_in_a_block_are_its_references() -> None:
    names = found(CODE, 6)
    assert {"Account", "account", "amount", "ledger", "ledger.note", "total", "later"} <= set(names)
    assert not {"pay", "Docstring", "Comment", "Quoted", "far", "Other", "next_one"} & set(names)
    assert names["Account"].telling
    assert names["ledger.note"].telling
    assert not names["total"].telling


def test_comments_and_strings_of_other_languages_are_skipped() -> None:
    names = found('fn pay() {\n    // Not this\n    Account::open(store->size, "Nor this");\n}\n', 2, "rust")
    assert {"Account.open", "Account", "store.size"} <= set(names)
    assert "Not" not in names
    assert "Nor" not in names
