"""A grammar's own lexer, called at its address in the wheel: reads the first terminal of a text.

The layout is that of ``TSLexer`` in ``tree_sitter/parser.h``. The grammar's external scanner is not called, so its
terminals (indentation, the inside of some strings) are unknown here.
"""

import ctypes
from threading import Lock

_ADVANCE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_bool)
_MARK_END = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_COLUMN = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p)
_ASK = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p)


class _Lexer(ctypes.Structure):
    _fields_ = (
        ("lookahead", ctypes.c_int32),
        ("symbol", ctypes.c_uint16),
        ("advance", _ADVANCE),
        ("mark_end", _MARK_END),
        ("column", _COLUMN),
        ("at_range_start", _ASK),
        ("at_end", _ASK),
        ("log", ctypes.c_void_p),
    )


class Lexer:
    """Reads one terminal at the beginning of a text, for one thread at a time."""

    def __init__(self, address: int) -> None:
        self._lex = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.POINTER(_Lexer), ctypes.c_uint16)(address)
        self._lock = Lock()
        self._text, self._place, self._end = "", 0, 0
        self._lexer = _Lexer(
            advance=_ADVANCE(self._advance),
            mark_end=_MARK_END(self._mark_end),
            column=_COLUMN(lambda _: self._place),
            at_range_start=_ASK(lambda _: False),
            at_end=_ASK(lambda _: self._place >= len(self._text)),
        )

    def token(self, mode: int, text: str) -> tuple[int, int] | None:
        """Return the terminal that ``text`` begins with in a lexer mode, and its end (characters); None for none."""
        with self._lock:
            self._text, self._place, self._end = text, 0, 0
            self._lexer.lookahead = ord(text[0]) if text else 0
            return (self._lexer.symbol, self._end) if self._lex(self._lexer, mode) else None

    def _advance(self, _lexer: int, _skip: bool) -> None:
        self._place += 1
        self._lexer.lookahead = ord(self._text[self._place]) if self._place < len(self._text) else 0

    def _mark_end(self, _lexer: int) -> None:
        self._end = self._place
