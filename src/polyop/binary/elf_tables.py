"""Read the tables of an ELF file, with limits.

The file may be cut off, damaged or malicious. So every offset is checked against the file's length, every
list has a maximal length, and each table is read once. :class:`Damaged` is the only error.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from ..core.locks import cached_property

_MAX_SYMBOLS = 4_000_000
_MAX_VERSIONS = 65_536
_MAX_NAME = 65_536
_MAX_NAME_BYTES = 512 << 20
"""Bytes of all names of a symbol table together. Names may overlap, so this can exceed the string table."""

PT_LOAD, PT_DYNAMIC, PT_INTERP = 1, 2, 3
DT_NEEDED, DT_HASH, DT_STRTAB, DT_SYMTAB, DT_STRSZ, DT_RPATH, DT_RUNPATH = 1, 4, 5, 6, 10, 15, 29
DT_GNU_HASH, DT_FLAGS_1, DT_VERNEED = 0x6FFFFEF5, 0x6FFFFFFB, 0x6FFFFFFE
SHT_SYMTAB, SHT_NOBITS, SHT_DYNSYM = 2, 8, 11
SHN_UNDEF = 0


class Damaged(ValueError):  # noqa: N818 - callers turn it into a LibraryError
    """The tables of a file cannot be read; the message says why."""


class Segment(NamedTuple):
    """A program header."""

    kind: int
    offset: int
    address: int
    size: int


class Section(NamedTuple):
    """A section header. ``name`` is an offset in the table of section names."""

    name: int
    kind: int
    offset: int
    size: int
    link: int


class Symbol(NamedTuple):
    """A symbol. ``info``, ``other`` and ``section`` are st_info, st_other and st_shndx."""

    name: str
    info: int
    other: int
    section: int
    value: int


class Elf:
    """An open ELF file. Raises :class:`Damaged` if it has no ELF header."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.length = stream.seek(0, 2)
        ident = self.at(0, 16)
        if ident[:4] != b"\x7fELF" or ident[4] not in (1, 2) or ident[5] not in (1, 2):
            raise Damaged("it does not begin as an ELF file")
        self.bits, self.is_little = 32 * ident[4], ident[5] == 1
        self._order, self._wide = "<" if self.is_little else ">", ident[4] == 2
        fields = self._unpack("HHIQQQIHHHHHH" if self._wide else "HHIIIIIHHHHHH", 16)
        self.machine = fields[1]
        self._segments, self._sections = fields[4], fields[5]
        self._segment_size, self._segment_count, self._section_size, self._section_count = fields[8:12]
        self._names_index = fields[12]

    def at(self, offset: int, size: int) -> bytes:
        """Return bytes of the file. Raises :class:`Damaged` beyond its end."""
        if offset < 0 or size < 0 or offset + size > self.length:
            raise Damaged(f"it refers to bytes {offset} to {offset + size}, and has {self.length}")
        self._stream.seek(offset)
        return self._stream.read(size)

    def _unpack(self, form: str, offset: int) -> tuple[int, ...]:
        form = self._order + form
        return struct.unpack(form, self.at(offset, struct.calcsize(form)))

    def _rows(self, form: str, data: bytes) -> Iterator[tuple[int, ...]]:
        form = self._order + form
        size = struct.calcsize(form)
        return struct.iter_unpack(form, data[: len(data) // size * size])

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        """The program headers."""
        wide = self._wide
        form = "IIQQQQQQ" if wide else "IIIIIIII"
        size = struct.calcsize(self._order + form)
        if self._segment_count and self._segment_size != size:
            raise Damaged(f"its program headers have {self._segment_size} bytes each instead of {size}")
        rows = self._rows(form, self.at(self._segments, size * self._segment_count))
        pick = (0, 2, 3, 5) if wide else (0, 1, 2, 4)
        return tuple(Segment(*(row[i] for i in pick)) for row in rows)

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """The section headers; empty for a file from which they were stripped."""
        form = "IIQQQQIIQQ" if self._wide else "IIIIIIIIII"
        size = struct.calcsize(self._order + form)
        if not self._sections or not self._section_count or self._section_size != size:
            return ()
        rows = self._rows(form, self.at(self._sections, size * self._section_count))
        return tuple(Section(row[0], row[1], row[4], row[5], row[6]) for row in rows)

    def section(self, name: str) -> bytes:
        """Return the content of the section with a name; empty if there is none."""
        if self._names_index >= len(self.sections):
            return b""
        names = self.content(self.sections[self._names_index])
        encoded = name.encode() + b"\0"
        for section in self.sections:
            if section.kind != SHT_NOBITS and names[section.name :][: len(encoded)] == encoded:
                return self.content(section)
        return b""

    def content(self, section: Section) -> bytes:
        """Return the bytes of a section."""
        return self.at(section.offset, section.size)

    @property
    def is_whole(self) -> bool:
        """Whether the file has all bytes that its program headers tell the loader to map."""
        return all(one.kind != PT_LOAD or one.offset + one.size <= self.length for one in self.segments)

    @property
    def interpreter(self) -> str:
        """The path of the loader that a program asks for; "" for a library."""
        segment = next((one for one in self.segments if one.kind == PT_INTERP), None)
        return "" if segment is None else os.fsdecode(self.at(segment.offset, segment.size).rstrip(b"\0"))

    def offset_of(self, address: int) -> int:
        """Return the offset in the file of an address in the loaded library."""
        for one in self.segments:
            if one.kind == PT_LOAD and one.address <= address < one.address + one.size:
                return one.offset + address - one.address
        raise Damaged(f"the address {address:#x} is in no loaded segment")

    @cached_property
    def dynamic(self) -> tuple[tuple[int, int], ...] | None:
        """The tags and values of the dynamic section, or None if there is none."""
        segment = next((one for one in self.segments if one.kind == PT_DYNAMIC), None)
        if segment is None:
            return None
        pairs = []
        for tag, value in self._rows("QQ" if self._wide else "II", self.at(segment.offset, segment.size)):
            if tag == 0:
                break
            pairs.append((tag, value))
        return tuple(pairs)

    def tag(self, number: int) -> int | None:
        """Return the first value of a tag in the dynamic section, or None."""
        return next((value for tag, value in self.dynamic or () if tag == number), None)

    @cached_property
    def strings(self) -> bytes:
        """The string table of the dynamic section."""
        address = self.tag(DT_STRTAB)
        return b"" if address is None else self.at(self.offset_of(address), self.tag(DT_STRSZ) or 0)

    def string(self, offset: int) -> str:
        """Return the name at an offset of the string table."""
        return _name(self.strings, offset)

    def dynamic_symbols(self) -> Iterator[Symbol]:
        """Yield the dynamic symbols, also of a file without section headers."""
        section = next((one for one in self.sections if one.kind == SHT_DYNSYM), None)
        if section is not None:
            yield from self.symbols(section)
            return
        address = self.tag(DT_SYMTAB)
        if address is not None:
            size = 24 if self._wide else 16
            data = self.at(self.offset_of(address), size * _bounded(self._count(), _MAX_SYMBOLS, "symbols"))
            yield from self._symbols(data, self.strings)

    def symbols(self, section: Section) -> Iterator[Symbol]:
        """Yield the symbols of a section."""
        if section.link >= len(self.sections):
            raise Damaged("its symbol table has no string table")
        names = self.content(self.sections[section.link])
        _bounded(section.size // (24 if self._wide else 16), _MAX_SYMBOLS, "symbols")
        yield from self._symbols(self.content(section), names)

    def _symbols(self, data: bytes, names: bytes) -> Iterator[Symbol]:
        total = 0
        pick = (0, 1, 2, 3, 4) if self._wide else (0, 3, 4, 5, 1)
        for row in self._rows("IBBHQQ" if self._wide else "IIIBBH", data):
            first, info, other, section, value = (row[i] for i in pick)
            if section == SHN_UNDEF and first >= len(names):
                continue  # GNU ld for aarch64 may leave such a row, with an address of its own memory in it
            name = _name(names, first)
            total = _bounded(total + len(name), _MAX_NAME_BYTES, "bytes of names")
            yield Symbol(name, info, other, section, value)

    def _count(self) -> int:
        """Return the number of dynamic symbols, which only the hash tables say."""
        sysv, gnu = self.tag(DT_HASH), self.tag(DT_GNU_HASH)
        if sysv is not None:
            return self._unpack("II", self.offset_of(sysv))[1]
        if gnu is None:
            return 0
        at = self.offset_of(gnu)
        buckets, first, bloom, _ = self._unpack("IIII", at)
        at += 16 + bloom * (8 if self._wide else 4)
        last = max((row[0] for row in self._rows("I", self.at(at, 4 * buckets))), default=0)
        at += 4 * buckets
        while last >= first and not self._unpack("I", at + 4 * (last - first))[0] & 1:
            last = _bounded(last + 1, _MAX_SYMBOLS, "symbols")
        return max(last + 1, first)

    def needed_versions(self) -> Iterator[str]:
        """Yield the symbol versions of other libraries that the library needs."""
        address, steps = self.tag(DT_VERNEED), 0
        while address is not None:
            _, count, _, aux, following = self._unpack("HHIII", self.offset_of(address))
            at = address + aux
            for _ in range(count):
                steps = _bounded(steps + 1, _MAX_VERSIONS, "versions")
                _, _, _, name, next_one = self._unpack("IHHII", self.offset_of(at))
                yield self.string(name)
                at += next_one
            steps = _bounded(steps + 1, _MAX_VERSIONS, "versions")
            address = address + following if following else None


def _name(names: bytes, offset: int) -> str:
    end = names.find(b"\0", offset, offset + _MAX_NAME)
    if end < 0:
        raise Damaged(f"the name at {offset} of {len(names)} bytes of names has no end")
    return names[offset:end].decode(errors="backslashreplace")


def _bounded(number: int, limit: int, unit: str) -> int:
    if number > limit:
        raise Damaged(f"it has more than {limit} {unit}")
    return number
