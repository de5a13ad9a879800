"""Compression codecs of record batches, in the framings that Java's client reads and writes.

* gzip: plain members.  zstd: plain frames.
* snappy: written in the xerial framing (a magic, two ints, then length and block), read in that
  one or raw.  The framing of snappy's own specification is not Kafka's.
* LZ4: one frame with independent blocks of 64 KB and no content checksum; Java refuses linked
  blocks and reads only the first of several frames.

`decompress` never holds more than `size_max` bytes, nor more than the input can become.  The
output buffer grows by steps; content that does not fit in the last one is a bomb.
"""

from __future__ import annotations

from types import ModuleType
from typing import Final, Protocol

from tarry.base.errors import CorruptData
from tarry.wire.gzip_members import PARTS_MIN, GzipMembers, check_parts

NONE: Final = 0
GZIP: Final = 1
SNAPPY: Final = 2
LZ4: Final = 3
ZSTD: Final = 4

NAMES: Final = ("none", "gzip", "snappy", "lz4", "zstd")

# Kafka's default level of each codec that has levels.
LEVEL_DEFAULT: Final = {GZIP: -1, LZ4: 9, ZSTD: 3}

# Highest zstd level of a broker: above it the first byte takes 30 to 120 ms, too long for a turn.
ZSTD_LEVEL_MAX: Final = 9

# Highest zstd level of a client, which compresses in its own time.
ZSTD_LEVEL_HIGHEST: Final = 22

# LZ4's levels of high compression; the level below them is the one fast form.
_LZ4_FAST: Final = 1
_LZ4_HIGH_MIN: Final = 3
_LZ4_HIGH_MAX: Final = 12

# Microseconds to compress a KiB at most, by codec, as pairs: up to this level, so many.
_COSTS: Final = {
    NONE: ((22, 1),),
    GZIP: ((6, 40), (9, 90)),
    SNAPPY: ((22, 3),),
    LZ4: ((_LZ4_FAST, 3), (9, 15), (_LZ4_HIGH_MAX, 100)),
    ZSTD: ((3, 8), (6, 16), (ZSTD_LEVEL_MAX, 45)),
}

# Bytes that one byte of input can become at most: deflate's longest match takes two bits for 258
# bytes; an LZ4 length byte stands for 255.  A zstd block of 4 bytes can repeat one byte 128 KB
# long.
_RATIO_MAX: Final = {GZIP: 1032, LZ4: 255, ZSTD: 128 * 1024 // 4}

_OUTPUT_BYTES_FIRST: Final = 64 * 1024
_OUTPUT_GROWTH: Final = 4

# First bytes of each gzip member, with the only compression method there is.
_GZIP_MAGIC: Final = b"\x1f\x8b\x08"

_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
_XERIAL_BLOCK_BYTES: Final = 32 * 1024

Data = bytes | memoryview


def _cramjam() -> ModuleType:
    # Imported on first use, so that a broker that opens no compressed batch does not pay for it.
    import cramjam

    return cramjam


class Compressor(Protocol):
    """Methods that the compressors of the library have in common."""

    def compress(self, data: Data) -> int: ...

    def finish(self) -> bytes: ...


def compress(
    codec: int, data: Data, level: int | None = None, zstd_level_max: int = ZSTD_LEVEL_MAX
) -> bytes:
    """Compress `data`; with the codec NONE return it as bytes.

    `level` is one of Kafka's, None for its default; NONE and SNAPPY have no levels.
    """
    if codec == NONE:
        return bytes(data)
    if codec == SNAPPY:
        return _compress_xerial(memoryview(data))
    compressor = make_compressor(codec, level, zstd_level_max)
    compressor.compress(data)
    return bytes(compressor.finish())


def make_compressor(
    codec: int, level: int | None = None, zstd_level_max: int = ZSTD_LEVEL_MAX
) -> Compressor:
    """Return the library's compressor for gzip, LZ4 or zstd, which takes content in parts."""
    made: Compressor
    if codec == GZIP:
        library = _cramjam().gzip
        made = library.Compressor() if level in (None, -1) else library.Compressor(level=level)
    elif codec == LZ4:
        made = _cramjam().lz4.Compressor(
            level=_lz4_level(level), content_checksum=False, block_linked=False
        )
    elif codec == ZSTD:
        wanted = LEVEL_DEFAULT[ZSTD] if level is None else level
        made = _cramjam().zstd.Compressor(level=min(wanted, zstd_level_max))
    else:
        raise ValueError(f"there is no codec {codec}")
    return made


def cost_per_kib(codec: int, level: int | None = None) -> int:
    """Return about how many microseconds it takes at most to compress a KiB."""
    if codec == LZ4:
        level = _lz4_level(level)
    elif level is None:
        level = LEVEL_DEFAULT.get(codec, 0)
    costs = _COSTS[codec]
    for level_max, cost in costs:
        if level <= level_max:
            return cost
    return costs[-1][1]


def _lz4_level(level: int | None) -> int:
    # Kafka's default of 9 means the fast compressor; any other level means high compression.
    if level is None or level == LEVEL_DEFAULT[LZ4]:
        return _LZ4_FAST
    return min(max(level, _LZ4_HIGH_MIN), _LZ4_HIGH_MAX)


def decompress(codec: int, data: Data, size_max: int) -> bytes:
    """Decompress `data`; `CorruptData` if it is invalid for the codec or exceeds `size_max`."""
    if codec == NONE:
        if len(data) > size_max:
            raise CorruptData(f"{len(data)} bytes, allowed are {size_max}")
        return bytes(data)
    if codec == GZIP:
        return _decompress_gzip(data, size_max)
    if codec == SNAPPY:
        return _decompress_snappy(memoryview(data), size_max)
    if codec == LZ4:
        return _decompress_growing(_cramjam().lz4, codec, data, size_max)
    if codec == ZSTD:
        return _decompress_growing(_cramjam().zstd, codec, data, size_max)
    raise CorruptData(f"there is no codec {codec}")


def _decompress_gzip(data: Data, size_max: int) -> bytes:
    """Open all members at once, or count them one by one if there may be too many."""
    if bytes(data).count(_GZIP_MAGIC) <= PARTS_MIN:
        return _decompress_growing(_cramjam().gzip, GZIP, data, size_max)
    members = GzipMembers(data, size_max)
    while not members.step():
        pass
    return members.content


def _decompress_growing(module: ModuleType, codec: int, data: Data, size_max: int) -> bytes:
    """Try buffers of growing size: the library stops when one is full."""
    if len(data) == 0:
        raise CorruptData(f"{NAMES[codec]}: no bytes")
    error_type = _cramjam().DecompressionError
    limit = min(size_max, len(data) * _RATIO_MAX[codec])
    room = min(limit, max(_OUTPUT_BYTES_FIRST, _OUTPUT_GROWTH * len(data)))
    while True:
        output = bytearray(room)
        try:
            size: int = module.decompress_into(data, output)
        except error_type as error:
            # Only the library's text distinguishes a full buffer from bad data, and texts change:
            # in both cases try on until the limit.
            if room >= limit:
                raise CorruptData(
                    f"{NAMES[codec]}: not to be opened in {limit} bytes: {error}"
                ) from error
            room = min(limit, room * _OUTPUT_GROWTH)
            continue
        return bytes(memoryview(output)[:size])


def _compress_xerial(data: memoryview) -> bytes:
    snappy = _cramjam().snappy
    parts = [_XERIAL_HEADER]
    for start in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(snappy.compress_raw(data[start : start + _XERIAL_BLOCK_BYTES]))
        parts.append(len(block).to_bytes(4, "big"))
        parts.append(block)
    return b"".join(parts)


def _decompress_snappy(data: memoryview, size_max: int) -> bytes:
    if bytes(data[: len(_XERIAL_MAGIC)]) != _XERIAL_MAGIC:
        return _decompress_snappy_block(data, size_max)
    position = len(_XERIAL_HEADER)
    if len(data) < position:
        raise CorruptData("snappy: header cut short")
    parts: list[bytes] = []
    room = size_max
    count = 0
    while position < len(data):
        count += 1
        check_parts(count, position + size_max - room)
        # Several streams may follow one another, each with its header.
        if bytes(data[position : position + len(_XERIAL_MAGIC)]) == _XERIAL_MAGIC:
            position += len(_XERIAL_HEADER)
            continue
        size = int.from_bytes(data[position : position + 4], "big")
        position += 4
        if size > len(data) - position:
            raise CorruptData(f"snappy: block of {size} bytes, {len(data) - position} left")
        part = _decompress_snappy_block(data[position : position + size], room)
        parts.append(part)
        room -= len(part)
        position += size
    return b"".join(parts)


def _decompress_snappy_block(block: memoryview, size_max: int) -> bytes:
    """Decompress one raw block, after checking the size that its first bytes declare."""
    cramjam = _cramjam()
    try:
        size: int = cramjam.snappy.decompress_raw_len(block)
        if size > size_max:
            raise CorruptData(f"snappy: block of {size} bytes, allowed are {size_max}")
        # Snappy's densest form, a copy of 64 bytes, takes 3 bytes.
        if size > 22 * len(block) + 64:
            raise CorruptData(f"snappy: {len(block)} bytes cannot become {size}")
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise CorruptData(f"snappy: {error}") from error
