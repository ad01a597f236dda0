"""How operations, bytes, seconds and lengths are written on the page Cost: always with their unit."""

from __future__ import annotations

from app.phrases import SPACE

BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB")
PREFIXES = ("", "k", "M", "G", "T", "P", "E", "Z", "Y", "R")
LARGE = (
    (10**24, "septillion"),
    (10**21, "sextillion"),
    (10**18, "quintillion"),
    (10**15, "quadrillion"),
    (10**12, "trillion"),
    (10**9, "billion"),
    (10**6, "million"),
)
SHORT_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
LONG_TIMES = ((31_557_600.0, "years"), (86_400.0, "days"), (3600.0, "hours"), (60.0, "minutes"))


def flop_text(count: float) -> str:
    """Write a number of floating-point operations: "1.63 TFLOP"."""
    return scaled(count, "FLOP")


def scaled(number: float, unit: str) -> str:
    """Write a number with three digits and a decimal prefix before its unit: "1.63 TFLOP", "312 TFLOP/s"."""
    size, prefixes = float(number), list(PREFIXES)
    while size >= 999.5 and len(prefixes) > 1:
        size /= 1000
        prefixes.pop(0)
    return f"{_digits(size)}{SPACE}{prefixes[0]}{unit}"


def bytes_text(count: float) -> str:
    """Write a number of bytes in powers of 1,024: "36 KiB", "1.5 GiB", and on to the ZiB."""
    power = min(max(int(count), 1).bit_length() - 1, 10 * (len(BINARY) - 1)) // 10
    return f"{count / 1024**power:,.4g}{SPACE}{BINARY[power]}"


def bytes_decimal(count: int) -> str:
    """Write a number of bytes in powers of a thousand: "604 MB"."""
    return scaled(count, "B")


def bytes_both(count: int) -> str:
    """Write a number of bytes both ways, in powers of 1,024 first: "1 GiB (1.07 GB)"."""
    return bytes_text(count) if count < 1024 else f"{bytes_text(count)} ({bytes_decimal(count)})"


def in_words(count: float) -> str:
    """Write a large number as it is spoken: "1.63 trillion"; a thousand thousand is a million."""
    for size, name in LARGE:
        if count >= size:
            return f"{_digits(count / size)}{SPACE}{name}"
    return f"{count:,.0f}"


def time_text(seconds: float) -> str:
    """Write a time: "3.2 ms", "40 s", "2.5 hours"."""
    for size, unit in LONG_TIMES:
        if seconds >= 2 * size:
            return f"{_digits(seconds / size)}{SPACE}{unit}"
    for size, unit in SHORT_TIMES:
        if seconds >= size:
            return f"{_digits(seconds / size)}{SPACE}{unit}"
    return f"{_digits(seconds * 1e9)}{SPACE}ns"


def times(factor: float) -> str:
    """Write how many times as much: "2.94", "4.00", "1.0003" where three digits would hide that it is more."""
    if factor >= 1000:
        return f"{factor:,.0f}"
    if 1 < factor < 1.005:
        return f"{factor:.2g}" if factor < 1.00005 else f"{factor:.4f}".rstrip("0")
    return f"{factor:.3g}" if factor >= 10 else f"{factor:.2f}"


def many_times(factor: float) -> str:
    """Write how many times as much in words: "as much", "1.05 times as much", "6.82 million times as much"."""
    if factor < 1.005:
        return "as much"
    return f"{times(factor) if factor < 1000 else in_words(factor)} times as much"


def money_text(amount: float) -> str:
    """Write a sum of money, two digits after the point: "1,234.50", "less than 0.01"."""
    return "less than 0.01" if 0 < amount < 0.01 else f"{amount:,.2f}"


def tokens_text(count: int) -> str:
    """Write a length: "1 token", "4,096 tokens"."""
    return f"{count:,} token{'s' * (count != 1)}"


def _digits(size: float) -> str:
    """Write three digits, and no more zeros than they need."""
    if size >= 100:
        return f"{size:,.0f}"
    return f"{size:.3g}"
