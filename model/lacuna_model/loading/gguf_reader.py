"""Reads metadata and tensors of a GGUF file with the ``gguf`` package, and reports every fault in one line."""

import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch

from lacuna_kernels.four_bit import BLOCK, FourBitWeight
from lacuna_model.core.errors import WeightsError

_COUNT = struct.Struct("<Q")
_ARRAY = struct.Struct("<IQ")
# Entries of a list that is read at once.
_MAX_SHORT = 1000


class _GgufReader(gguf.GGUFReader):
    """The library's reader, except for lists: it makes an array of every entry, which takes 10 s for 150,000 tokens.

    The method returns the same as the one it replaces: size, parts, the values' indices among them, and types.
    """

    def _get_field_parts(self, orig_offs: int, raw_type: int) -> tuple[int, list[Any], list[int], list[Any]]:
        if raw_type != gguf.GGUFValueType.ARRAY or self.byte_order != "I":
            whole: tuple[int, list[Any], list[int], list[Any]] = super()._get_field_parts(orig_offs, raw_type)
            return whole
        kind, count = _ARRAY.unpack_from(self.data.data, orig_offs)
        start = orig_offs + _ARRAY.size
        types = [gguf.GGUFValueType.ARRAY, gguf.GGUFValueType(kind)]
        if kind == gguf.GGUFValueType.STRING:
            parts = self._strings(start, count)
            size = sum(part.nbytes for part in parts) + _COUNT.size * count
        else:
            values = self._get(start, self.gguf_scalar_to_np[types[1]], count)
            if len(values) < count:
                raise IndexError(f"a list of {count} values ends after {len(values)}")
            parts, size = [values], values.nbytes
        return _ARRAY.size + size, parts, list(range(len(parts))), types

    def _strings(self, place: int, count: int) -> list[Any]:
        data = self.data.data
        found = []
        for _ in range(count):
            (length,) = _COUNT.unpack_from(data, place)
            place += _COUNT.size
            found.append(data[place : place + length])
            place += length
        return found


class _LongListError(Exception):
    """A long list begins."""


class _Beginning(_GgufReader):
    """Reads what stands before the first long list: the vocabulary's lists take some tenths of a second."""

    def _get_field_parts(self, orig_offs: int, raw_type: int) -> tuple[int, list[Any], list[int], list[Any]]:
        if raw_type == gguf.GGUFValueType.ARRAY and _ARRAY.unpack_from(self.data.data, orig_offs)[1] > _MAX_SHORT:
            raise _LongListError
        return super()._get_field_parts(orig_offs, raw_type)


def first_texts(path: Path, names: Iterable[str]) -> list[str]:
    """Those of some metadata fields of a GGUF file that are texts and stand before its first long list, as usual.

    Raises WeightsError where the file is no GGUF file, or is damaged.
    """
    reader = _Beginning.__new__(_Beginning)
    with suppress(_LongListError), _faults(path):
        reader.__init__(path)  # type: ignore[misc]
    found = (reader.get_field(name) for name in names)
    return [field.contents() for field in found if field is not None and field.types == [gguf.GGUFValueType.STRING]]


@contextmanager
def _faults(path: Path) -> Iterator[None]:
    """Raises WeightsError in place of what the library raises on a damaged file: it has no error type of its own."""
    try:
        yield
    except OSError as error:
        raise WeightsError(f"{path} cannot be read: {error.strerror or error}") from error
    except (ValueError, LookupError, ArithmeticError, TypeError, struct.error) as error:
        raise WeightsError(f"{path} is no readable GGUF file, or is cut short ({error}); fetch it again") from error


class GgufReader:
    """An open GGUF file: metadata by name, and ``tensors`` by name, still quantised.

    Raises WeightsError where the file is not a GGUF file or is cut short.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with _faults(path):
            self._reader = _GgufReader(path)
        self.tensors = {tensor.name: tensor for tensor in self._reader.tensors}

    def optional(self, name: str) -> Any:
        """The metadata field ``name``; None where the file has none."""
        field = self._reader.get_field(name)
        try:
            return None if field is None else field.contents()
        except ValueError as error:
            raise WeightsError(f"{self.path}: the metadata field {name!r} is damaged ({error})") from error

    def field(self, name: str) -> Any:
        """The metadata field ``name``; raises WeightsError where the file has none."""
        found = self.optional(name)
        if found is None:
            raise WeightsError(f"{self.path} lacks the metadata field {name!r}")
        return found

    def texts(self, name: str) -> list[str]:
        """A metadata field that is a list of texts; raises WeightsError where it is none."""
        found = self.field(name)
        if not (isinstance(found, list) and all(isinstance(one, str) for one in found)):
            raise WeightsError(f"{self.path} has no list of texts in the metadata field {name!r}")
        return found

    def integers(self, name: str) -> list[int] | None:
        """A metadata field that is a list of integers, or None; raises WeightsError where it is something else."""
        found = self.optional(name)
        if found is not None and not (isinstance(found, list) and all(isinstance(one, int) for one in found)):
            raise WeightsError(f"{self.path} has no list of integers in the metadata field {name!r}")
        return found

    def number(self, name: str, default: float | None = None) -> Any:
        """A metadata field that is one number, or ``default``; raises WeightsError where there is neither."""
        found = self.optional(name)
        found = default if found is None else found
        if not isinstance(found, int | float):
            what = "lacks" if found is None else "has no single number in"
            raise WeightsError(f"{self.path} {what} the metadata field {name!r}")
        return found


def dequantized(tensor: gguf.ReaderTensor) -> np.ndarray[Any, np.dtype[np.float32]]:
    """The values of a tensor in float32, as a copy."""
    return np.array(gguf.dequantize(tensor.data, tensor.tensor_type), dtype=np.float32)


def four_bit(tensor: gguf.ReaderTensor) -> FourBitWeight | None:
    """A two-dimensional tensor in its stored form, or None where that is not Q4_K."""
    if tensor.tensor_type != gguf.GGMLQuantizationType.Q4_K or len(tensor.shape) != 2:
        return None
    width, out = tensor.shape.tolist()
    blocks = np.ascontiguousarray(tensor.data).reshape(out * width // BLOCK, -1)
    halves, packed, codes = np.hsplit(blocks, (4, 16))
    steps = halves.copy().view(np.float16).astype(np.float32)
    scale, minimum = gguf.quants.Q4_K.get_scale_min(packed)
    low_and_high = np.stack((codes.reshape(-1, 4, 32) & 15, codes.reshape(-1, 4, 32) >> 4), axis=2)
    parts = (low_and_high, scale, minimum, steps[:, 0], -steps[:, 1])
    return FourBitWeight(*(torch.from_numpy(np.ascontiguousarray(part)).view(out, -1) for part in parts))
