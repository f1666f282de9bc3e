"""Which licences are accepted."""

import pytest

from training.licences import copyleft_header, permissive_licence

PERMITTED_EXPRESSIONS = ["MIT", "mit", "BSD-3-Clause", "Apache-2.0 AND MIT", "GPL-2.0-only OR MIT", "(MIT OR GPL-3.0)"]
PERMITTED_EXPRESSIONS += ["Apache-2.0 WITH LLVM-exception", "MIT/Apache-2.0", "0BSD", "ISC", "PSF-2.0", "Unlicense"]
REFUSED_EXPRESSIONS = ["GPL-3.0-only", "MIT AND GPL-2.0", "MPL-2.0", "LGPL-2.1", "LicenseRef-Own", "MIT)"]
REFUSED_EXPRESSIONS += ["(MIT", "SEE LICENSE IN LICENSE", "MIT AND (GPL-2.0 OR MPL-2.0)", "MIT MIT", "AND"]


@pytest.mark.parametrize("expression", [*PERMITTED_EXPRESSIONS, *REFUSED_EXPRESSIONS])
def test_permissive_expressions_are_accepted_and_others_refused(expression: str) -> None:
    assert permissive_licence(expression) == (expression if expression in PERMITTED_EXPRESSIONS else None)


def test_every_classifier_has_to_be_permissive() -> None:
    mit, gpl = "License :: OSI Approved :: MIT License", "License :: OSI Approved :: GNU General Public License (GPL)"
    assert permissive_licence(None, [mit, "Programming Language :: Python"]) == "MIT"
    assert permissive_licence(None, [mit, "License :: OSI Approved"]) == "MIT"
    assert permissive_licence(None, [mit, gpl]) is None


@pytest.mark.parametrize(
    ("text", "licence"),
    [
        ("MIT License", "MIT"),
        ("The MIT License (MIT)", "MIT"),
        ("Apache License, Version 2.0", "Apache-2.0"),
        ("Apache 2.0", "Apache-2.0"),
        ("BSD 3-Clause License", "BSD-3-Clause"),
        ("New BSD License", "BSD-3-Clause"),
        ("PSF", "PSF-2.0"),
        ("MIT with a few exceptions", None),
        ("GPL", None),
        ("proprietary", None),
        ("", None),
    ],
)
def test_free_text_is_matched_as_a_whole(text: str, licence: str | None) -> None:
    assert permissive_licence(None, (), text) == licence


def test_copyleft_notices_are_found_only_at_the_top_of_a_file() -> None:
    notice = "# This file is part of x, under the GNU Lesser General Public License.\n"
    assert copyleft_header(notice + "x = 1\n")
    assert copyleft_header("// SPDX-License-Identifier: MPL-2.0\n")
    assert not copyleft_header("# SPDX-License-Identifier: MIT\n")
    assert not copyleft_header("x = 1\n" * 2000 + notice)
