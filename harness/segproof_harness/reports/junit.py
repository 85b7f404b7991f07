# SPDX-License-Identifier: Apache-2.0
"""Verdicts as JUnit XML, which CI servers show: a suite for each partition, a case for each cause.

A partition without a defect is one case that passes. A note passes too, and its words are output;
a note of a file that was not looked into is a case that was skipped.
Source: the Maven Surefire report schema; fields that have no meaning here are left out.
"""

import sys
from collections.abc import Callable
from xml.etree import ElementTree

from segproof.findings import Finding, Summary
from segproof_harness.reports.causes import Cause, Causes
from segproof_harness.reports.text import printable
from segproof_harness.reports.verdicts import WHOLE, Restriction, facts_of, head_of


class JUnitReport:
    """Writes a suite at each summary. `fails` says which findings fail a case."""

    def __init__(
        self, fails: Callable[[Finding], bool], restricted_to: Restriction = WHOLE
    ) -> None:
        self._fails = fails
        self._restricted_to = restricted_to
        self._causes = Causes()
        sys.stdout.write('<?xml version="1.0" encoding="UTF-8"?>\n')
        sys.stdout.write('<testsuites name="segproof verify">\n')

    def finding(self, finding: Finding) -> None:
        """Take the next finding."""
        self._causes.add(finding)

    def summary(self, summary: Summary) -> None:
        """Write the suite of what the findings so far are about."""
        words = f"{head_of(summary, self._restricted_to)}: {facts_of(summary)}"
        self._write(summary.path, "; ".join(filter(None, (words, str(self._restricted_to)))))

    def end(self) -> None:
        """Write a suite of the findings without a summary, if any, and close the document."""
        self._write("not checked to the end", "")
        sys.stdout.write("</testsuites>\n")

    def _write(self, name: str, verdict: str) -> None:
        causes = list(self._causes.take())
        if not causes and not verdict:
            return
        name = printable(name)
        suite = ElementTree.Element("testsuite", name=name, errors="0")
        suite.set("skipped", str(sum(map(self._is_skipped, causes))))
        suite.set("tests", str(max(1, len(causes))))
        suite.set("failures", str(sum(self._fails(one.first) for one in causes)))
        if verdict:
            properties = ElementTree.SubElement(suite, "properties")
            ElementTree.SubElement(properties, "property", name="verdict", value=verdict)
        for cause in causes:
            self._add_case(suite, name, cause)
        if not causes:
            ElementTree.SubElement(suite, "testcase", classname=name, name="verify")
        ElementTree.indent(suite)
        text = ElementTree.tostring(suite, encoding="unicode")
        sys.stdout.write(text.encode("ascii", "xmlcharrefreplace").decode("ascii") + "\n")

    def _is_skipped(self, cause: Cause) -> bool:
        return cause.first.is_not_looked_into and not self._fails(cause.first)

    def _add_case(self, suite: ElementTree.Element, name: str, cause: Cause) -> None:
        first, laws = cause.first, ", ".join(cause.laws)
        title = f"{laws} {printable(first.path)}"
        case = ElementTree.SubElement(suite, "testcase", classname=name, name=title)
        words = printable(first.message)
        if self._fails(first):
            told = ElementTree.SubElement(case, "failure", message=words, type=laws)
        elif self._is_skipped(cause):
            told = ElementTree.SubElement(case, "skipped", message=words)
        else:
            told = ElementTree.SubElement(case, "system-out")
        told.text = "\n".join(map(printable, _lines_of(cause)))


def _lines_of(cause: Cause) -> list[str]:
    """Return a cause in words, a line each."""
    first = cause.first
    at = f", the first at {', '.join(map(str, cause.positions))}" if cause.positions else ""
    told = {
        first.severity.value: first.message,
        "places": f"{cause.count}{at}",
        "expected": first.expected,
        "actual": first.actual,
        "consumers": cause.consumers_see,
        "hint": first.hint,
        "reproduce": cause.reproduce,
    }
    return [f"{name}: {value}" for name, value in told.items() if value]
