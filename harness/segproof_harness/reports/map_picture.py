# SPDX-License-Identifier: Apache-2.0
"""The damage map of a file as a picture for an HTML page, with the same in words and in a table.

Kinds of spans differ in shape and pattern, not in colour alone.
"""

from collections.abc import Iterable

from segproof.counts import plural
from segproof.findings import time_text
from segproof.stretches.kafka.rules import RULES
from segproof.stretches.spans import Span, SpanKind
from segproof_harness.reports.file_map import COLUMNS, FileMap
from segproof_harness.reports.page_text import code_of, list_of

KIND_WORDS = {
    SpanKind.SOUND: "sound",
    SpanKind.BROKEN: "broken",
    SpanKind.TORN: "torn: the end of the file cuts a batch off",
    SpanKind.MENDED: "mended: only the size or the magic is wrong",
    SpanKind.RESTORED: "restored: only the base offset is wrong",
    SpanKind.MOVED: "moved: sound, but in a wrong place",
    SpanKind.ASIDE: "aside: right checksum, but it fits nowhere",
    SpanKind.ZEROS: "zeros up to the end",
    SpanKind.UNSEARCHED: "not searched",
}
BAR_OF = {
    SpanKind.SOUND: (24, 22),
    SpanKind.BROKEN: (15, 34),
    SpanKind.TORN: (15, 34),
    SpanKind.MENDED: (19, 30),
    SpanKind.RESTORED: (19, 30),
    SpanKind.MOVED: (19, 30),
    SpanKind.ASIDE: (19, 30),
    SpanKind.ZEROS: (30, 10),
    SpanKind.UNSEARCHED: (24, 22),
}
"""Top and height of a bar in pixels: kinds differ in shape, not in colour alone."""
RULE_NAMES = {one.rule_id: one.name for one in RULES}
RECOVERY_POINTS = code_of("recovery-point-offset-checkpoint")
PATTERNS = """\
<svg width="0" height="0" aria-hidden="true" style="position:absolute"><defs>
<pattern id="p-sound" width="8" height="8" patternUnits="userSpaceOnUse">\
<rect width="8" height="8" class="f-sound"/></pattern>
<pattern id="p-broken" width="6" height="6" patternUnits="userSpaceOnUse">\
<rect width="6" height="6" class="f-page"/>\
<path d="M-1 1l2-2M0 6l6-6M5 7l2-2" class="s-broken" stroke-width="2.6"/></pattern>
<pattern id="p-torn" width="6" height="6" patternUnits="userSpaceOnUse">\
<rect width="6" height="6" class="f-page"/>\
<path d="M-1 5l2 2M0 0l6 6M5 -1l2 2" class="s-torn" stroke-width="1.4"/></pattern>
<pattern id="p-moved" width="6" height="6" patternUnits="userSpaceOnUse">\
<rect width="6" height="6" class="f-page"/><circle cx="3" cy="3" r="1.9" class="f-moved"/>\
</pattern>
<pattern id="p-mended" width="6" height="6" patternUnits="userSpaceOnUse">\
<rect width="6" height="6" class="f-page"/>\
<path d="M2 0v6" class="s-mended" stroke-width="2.2"/></pattern>
<pattern id="p-restored" width="6" height="6" patternUnits="userSpaceOnUse">\
<rect width="6" height="6" class="f-page"/>\
<path d="M0 2h6" class="s-restored" stroke-width="2.2"/></pattern>
<pattern id="p-aside" width="6" height="6" patternUnits="userSpaceOnUse">\
<rect width="6" height="6" class="f-page"/>\
<path d="M1 1l4 4M5 1l-4 4" class="s-aside" stroke-width="1.4"/></pattern>
<pattern id="p-zeros" width="6" height="6" patternUnits="userSpaceOnUse">\
<rect width="6" height="6" class="f-page"/></pattern>
<pattern id="p-unsearched" width="6" height="6" patternUnits="userSpaceOnUse">\
<rect width="6" height="6" class="f-page"/>\
<path d="M0 3h6M3 0v6" class="s-unsearched" stroke-width="1.4"/></pattern>
</defs></svg>
"""


def figure_of(drawn: FileMap, places: Iterable[int], entry_bytes: int, name: str) -> str:
    """Return the damage map of a file: the picture, its legend, what a recovery does, its spans.

    `places` are the bytes at which a law is broken. In a file that is no log an entry of so many
    bytes is drawn there. `name` is an id that nothing else in the page has. The page needs PATTERNS
    once.
    """
    words = _map_words(drawn)
    bars = [_bar(kind, first, behind) for kind, first, behind in drawn.runs()]
    if not drawn.columns:
        bars = ['<rect x="0" y="24" width="100%" height="22" class="edge"/>']
        bars += [
            _bar(SpanKind.BROKEN, one, drawn.column(position + entry_bytes - 1) + 1)
            for one, position in {drawn.column(each): each for each in places}.items()
        ]
    bars += [
        f'<svg x="{100 * (one + 0.5) / COLUMNS:.2f}%" y="52" overflow="visible">'
        '<path d="M-4 8h8l-4-8z" class="f-ink"/></svg>'
        for one in _columns(drawn, places)
    ]
    if drawn.damage is not None:
        at = 100 * drawn.damage.position / drawn.size_bytes
        anchor, shift = ("start", 5) if at < 60 else ("end", -5)
        bars.append(
            f'<line x1="{at:.2f}%" x2="{at:.2f}%" y1="0" y2="52" class="s-ink"'
            ' stroke-width="1.5" stroke-dasharray="4 3"/>'
            f'<text x="{at:.2f}%" dx="{shift}" y="10" font-size="12" text-anchor="{anchor}"'
            ' class="f-ink">a recovery cuts here</text>'
        )
    ends = f"<span>byte 0</span><span>{drawn.size_bytes} bytes</span>"
    return (
        f"<figure><figcaption>Damage map of {code_of(drawn.path)}</figcaption>\n"
        f'<svg class="bar" role="img" aria-labelledby="{name}"><title id="{name}">{words}</title>'
        f'{"".join(bars)}</svg>\n<div class="ends">{ends}</div>\n{_legend(drawn)}'
        f"{_recovery(drawn)}{_span_table(drawn)}</figure>\n"
    )


def _columns(drawn: FileMap, places: Iterable[int]) -> list[int]:
    return sorted({drawn.column(position) for position in places})


def _bar(kind: SpanKind, first: int, behind: int) -> str:
    top, height = BAR_OF[kind]
    edge = f' class="s-{kind.value}"'
    return (
        f'<rect x="{100 * first / COLUMNS:.2f}%" y="{top}" height="{height}"'
        f' width="{100 * (behind - first) / COLUMNS:.2f}%" fill="url(#p-{kind.value})"{edge}/>'
    )


def _map_words(drawn: FileMap) -> str:
    """Return in words what the picture shows."""
    told = [
        f"{kind.value}: {drawn.bytes_of[kind]} bytes in {plural(drawn.places[kind], 'place')}"
        for kind in KIND_WORDS
        if drawn.places[kind]
    ]
    return f"{drawn.size_bytes} bytes; {'; '.join(told) or 'triangles show broken places'}"


def _legend(drawn: FileMap) -> str:
    keys = [
        f'<li><svg aria-hidden="true"><rect x="1" y="1" width="20" height="12"'
        f' fill="url(#p-{kind.value})" class="s-{kind.value}"/></svg>{words}:'
        f" {drawn.bytes_of[kind]} bytes in {plural(drawn.places[kind], 'place')}</li>"
        for kind, words in KIND_WORDS.items()
        if drawn.places[kind]
    ]
    keys.append(
        '<li><svg aria-hidden="true"><path d="M6 12h10l-5-10z" class="f-ink"/></svg>'
        "a law is broken here</li>"
    )
    return f'<ul class="legend">{"".join(keys)}</ul>\n'


def _recovery(drawn: FileMap) -> str:
    """Return what a broker's recovery keeps and throws away."""
    damage = drawn.damage
    if damage is None:
        return ""
    unit = "message" if drawn.has_messages else "batch"
    cut = damage.position
    broken = f"{damage.broken_bytes} bytes in {plural(damage.broken_places, 'place')}"
    sound = ""
    if damage.sound is not None:
        records = "" if drawn.has_messages else f" with {plural(damage.sound.records, 'record')},"
        sound = (
            f"{plural(damage.sound.batches, unit)},{records} from byte {damage.sound.start} on,"
            f" offsets {_offsets(damage.sound)}"
        )
        sound += f", {times}" if (times := _times(damage.sound)) else ""
    elif damage.is_tail:
        sound = f"nothing: no sound {unit} follows"
    if not drawn.has_messages:
        broken += f", with {damage.lost_words()}"
    if damage.unsearched_from is not None:
        broken += f"; the search ended at byte {damage.unsearched_from}"
    rows = {
        "keeps": f"bytes 0 to {cut - 1}: {plural(drawn.kept_batches, unit)}" if cut else "nothing",
        "deletes, though sound": sound,
        **{
            f"deletes, {why}": plural(count, unit) if count else ""
            for why, count in (
                ("though the checksum proves it", damage.mended_batches),
                ("though its place states its offset", damage.restored_batches),
                ("though sound, in a wrong place", damage.moved_batches),
                ("and fits nowhere", damage.odd_batches),
            )
        },
        "deletes, broken": broken if damage.broken_places or damage.unsearched_from else "",
    }
    if drawn.has_messages:
        who, later = "A recovery that reaches this place", "removes all later files of the log"
    else:
        who, later = "A broker that recovers this log", "deletes all segments behind it"
        later += f". It looks at no segment that ends before the offset in {RECOVERY_POINTS}"
    return (
        f"<p><strong>{who}</strong>, as at a start after an unclean stop, cuts the file at byte"
        f" {cut}. It also {later}.</p>\n{list_of(rows)}"
    )


def _offsets(span: Span) -> str:
    return f"{span.first_offset} to {span.last_offset}"


def _times(span: Span) -> str:
    if span.max_timestamp < 0:
        return ""
    first, last = time_text(span.min_timestamp), time_text(span.max_timestamp)
    return f'<span class="time">{first}</span> to <span class="time">{last}</span>'


def _rule(span: Span) -> str:
    """Return which rule of placing decided a span that does not simply stay."""
    is_told = span.rule_id and span.kind not in (SpanKind.SOUND, SpanKind.MENDED)
    return f" ({span.rule_id}, {RULE_NAMES[span.rule_id]})" if is_told else ""


def _span_table(drawn: FileMap) -> str:
    if not drawn.spans:
        return ""
    rows = [
        f"<tr><td>{one.kind.value}{_rule(one)}</td>"
        f'<td class="number">{one.start} to {one.end - 1}</td>'
        f'<td class="number">{one.size_bytes}</td>'
        f'<td class="number">{one.batches or ""}</td>'
        f'<td class="number">{_offsets(one) if one.batches else ""}</td>'
        f"<td>{_times(one)}</td></tr>\n"
        for one in drawn.spans
    ]
    unit = "messages" if drawn.has_messages else "batches"
    heads = ("what", "bytes from, to", "size", unit, "offsets from, to", "times")
    head = "".join(f"<th scope=col>{one}</th>" for one in heads)
    beyond = drawn.places.total() - len(drawn.spans)
    more = f'<p class="soft">{beyond} more places follow; the map draws all.</p>' if beyond else ""
    return (
        f'<div class="scroll" tabindex="0"><table><thead><tr>{head}</tr></thead>\n{"".join(rows)}'
        f"</table></div>{more}\n"
    )
