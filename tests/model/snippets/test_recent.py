from lacuna_model.snippets.recent import RecentChunks

TEXT = "".join(f"value_{i} = {i}\n" for i in range(100))


def chunks(ring: RecentChunks, path: str = "", query: str = "", known: str = "") -> list[tuple[str, str, float]]:
    names = known.split() or [f"{i}.py" for i in range(50)]
    return [(one.path, one.text, one.score) for one in ring.candidates(path, set(query.split()), names)]


def test_the_rows_around_edits_are_kept_and_the_newest_come_first() -> None:
    ring = RecentChunks()
    ring.note("1.py", TEXT, TEXT.index("value_50"), "edited")
    ring.note("2.py", TEXT.replace("\n", "\r\n"), 0, "edited")
    (newer, older) = chunks(ring)
    assert (newer[0], older[0]) == ("2.py", "1.py")
    assert older[1] == "".join(f"value_{i} = {i}\n" for i in range(38, 62))
    assert newer[1] == "".join(f"value_{i} = {i}\n" for i in range(12))
    assert newer[2] > older[2]


def test_rows_with_a_credential_and_empty_ones_are_not_kept() -> None:
    ring = RecentChunks()
    ring.note("1.py", f'password = "{"a1B2c3D4e5F6g7H8"}"\n', 0, "edited")
    ring.note("1.py", "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n", 0, "edited")
    ring.note("1.py", "\n\n", 0, "edited")
    assert chunks(ring) == []
