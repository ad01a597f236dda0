"""Costs as a table in HTML: compact numbers to read, exact ones under the pointer; all text in it is the app's own.

A telephone has room for the model's cost and for what twice the text costs; the other columns are left out there.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from app import palette
from app.charts_curves import GRID_DARK, GRID_LIGHT
from app.cost_numbers import Row
from app.cost_units import bytes_both, bytes_text, flop_text, times, tokens_text
from app.phrases import percent

STYLE = """
.costs{overflow-x:auto}
.costs table{width:100%;border-collapse:collapse;font-size:1rem;line-height:1.35;color:var(--ink)}
.costs th{text-align:right;font-weight:400;color:var(--soft);padding:.3rem .4rem .3rem 1rem;vertical-align:bottom}
.costs th:first-child,.costs td:first-child{text-align:left;padding-left:.4rem}
.costs td{text-align:right;padding:.3rem .4rem .3rem 1rem;border-top:1px solid var(--hair);white-space:nowrap}
.costs .group th{font-weight:600;color:var(--ink);padding-top:.9rem}
.costs .sum td{font-weight:600}
.costs .unbuilt td{color:var(--soft)}
.costs .unbuilt td s{text-decoration-thickness:1px}
.costs .chosen td{color:var(--accent);font-weight:600}
.costs .square td:last-child{color:var(--accent);font-weight:600}
@media (max-width:640px){.costs tr>:nth-child(2),.costs tr>:nth-child(4),.costs tr>:nth-child(5){display:none}
.costs td:first-child{white-space:normal}}
"""
STEEP = 1.05  # times what the whole grows by: what grows faster than that is set apart


def cost_table(rows: Sequence[Row], tokens: int, *, mean: bool = False, thing: str = "text", dark: bool = False) -> str:
    """Draw operations and memory, each at n tokens and at 2n.

    Args:
        rows: operations first, then bytes.
        tokens: n.
        mean: whether layers differ, so that what one of them costs is a mean.
        thing: what is read, a "text" or an "image".
        dark: True on a dark page.

    Returns:
        HTML with its own colours; the exact number of each cell is its title.
    """
    one = "one layer, on average" if mean else "one layer"
    heads = (
        "", one, f"model, {tokens_text(tokens)}", "share", tokens_text(2 * tokens), f"twice the {thing} costs",
    )  # fmt: skip
    titles = "".join(f"<th>{escape(head)}</th>" for head in heads)
    body: list[str] = []
    for unit, heading in (("FLOP", "Operations"), ("B", "Memory")):
        body.append(f'<tr class="group"><th colspan="6">{heading}</th></tr>')
        body += [_row(row) for row in rows if row.unit == unit]
    table = f"<table><thead><tr>{titles}</tr></thead><tbody>{''.join(body)}</tbody></table>"
    return f'<div class="costs" style="{_colours(dark)}">{table}<style>{STYLE}</style></div>'


def _row(row: Row) -> str:
    cells = [
        f"<td>{_named(row)}</td>",
        "<td>–</td>" if row.per_layer is None else _cell(row.per_layer, row),
        _cell(row.whole, row),
        f"<td>{'' if row.share is None else percent(row.share)}</td>",
        _cell(row.doubled, row),
        f"<td>{'–' if row.factor is None else '× ' + times(row.factor)}</td>",
    ]
    steep = row.factor is not None and row.factor > 2 * STEEP and not row.is_sum and row.held
    kinds = {"sum": row.is_sum, "square": steep, "unbuilt": not row.held, "chosen": row.chosen}
    kind = " ".join(name for name, holds in kinds.items() if holds)
    return f'<tr class="{kind}">{"".join(cells)}</tr>' if kind else f"<tr>{''.join(cells)}</tr>"


def _named(row: Row) -> str:
    name = escape(row.name[:1].upper() + row.name[1:])
    return name if row.held else f"{name}: not built"


def _cell(count: float, row: Row) -> str:
    unit = row.unit
    exact = f"{round(count):,} {unit}"
    full = exact if unit == "FLOP" else f"{exact}, {bytes_both(round(count))}"
    shown = flop_text(count) if unit == "FLOP" else bytes_text(round(count))
    text = escape(shown) if row.held else f"<s>{escape(shown)}</s>"
    return f'<td title="{escape(full)}">{text}</td>'


def _colours(dark: bool) -> str:
    names = {
        "ink": (palette.INK_LIGHT, palette.INK_DARK),
        "soft": (palette.SOFT_INK_LIGHT, palette.SOFT_INK_DARK),
        "accent": (palette.ACCENT_LIGHT, palette.ACCENT_DARK),
        "hair": (GRID_LIGHT, GRID_DARK),
    }
    return ";".join(f"--{name}:{pair[dark]}" for name, pair in names.items())
