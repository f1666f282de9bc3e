"""Bytes as tokens."""

from tests.model.syntax.conftest import SmallTokens

from lacuna_model.syntax.text.vocabulary import ByteVocabulary, vocabulary_of


def test_a_vocabulary_encodes_any_bytes(tokens: SmallTokens) -> None:
    vocabulary = ByteVocabulary(tokens)
    for data in (b"return x", "größe → 数".encode(), b"\xff\xfe\x00", b"\n\t"):
        assert vocabulary.text(vocabulary.encode(data)) == data
    assert vocabulary_of(tokens) is vocabulary_of(tokens)
