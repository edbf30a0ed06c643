"""The comparison core passes nothing that was not compared, and calls no difference equal."""

import json
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mosstalk.parity.comparison import Comparison, Expectation
from mosstalk.parity.report import Report

ONES = np.ones(4, np.float32)


def test_equal_arrays_pass_with_their_figures() -> None:
    comparison = Comparison("same", 0.0)
    comparison.add("a", ONES, ONES.copy())
    result = comparison.result()
    assert (result.passed, result.compared, result.max_abs, result.mean_abs) == (True, 4, 0.0, 0.0)


def test_the_smallest_difference_fails_at_tolerance_zero() -> None:
    comparison = Comparison("near", 0.0)
    comparison.add("a", ONES, np.nextafter(ONES, 2, dtype=np.float32))
    assert not comparison.result().passed


def test_tolerance_is_relative_to_the_largest_expected_value() -> None:
    expected, found = np.array([1000.0, 1.0]), np.array([1000.0, 1.009])
    for tolerance, passes in ((1e-5, True), (1e-6, False)):
        comparison = Comparison("relative", tolerance)
        comparison.add("a", expected, found)
        assert comparison.result().passed is passes


@pytest.mark.parametrize(
    ("expected", "found", "problem"),
    [
        (ONES, ONES[:3], "shape"),
        (ONES[:0], ONES[:0], "nothing to compare"),
        (0 * ONES, 0 * ONES, "zero"),
        (ONES, np.array([1, 1, 1, np.nan]), "not finite"),
        (ONES * np.inf, ONES * np.inf, "not finite"),
        (ONES * np.nan, ONES * np.nan, "not finite"),
    ],
)
@pytest.mark.parametrize("expects", ["equal", "differ"])
def test_nothing_else_passes(
    expected: NDArray[Any], found: NDArray[Any], problem: str, expects: Expectation
) -> None:
    comparison = Comparison("odd", 1.0, expects)
    comparison.add("a", expected, found)
    result = comparison.result()
    assert not result.passed
    assert problem in result.problem


def test_non_finite_values_are_counted() -> None:
    comparison = Comparison("holes", 1.0)
    comparison.add("a", ONES, np.array([1, np.nan, np.inf, 1]))
    assert comparison.result().non_finite == 2


def test_a_check_that_compared_nothing_fails() -> None:
    assert Comparison("empty", 0.0).result().problem == "nothing was compared"


def test_a_control_must_differ_in_every_comparison() -> None:
    comparison = Comparison("control", 0.0, "differ")
    comparison.add("a", ONES, 2 * ONES)
    assert comparison.result().passed
    comparison.add("b", ONES, ONES)
    result = comparison.result()
    assert not result.passed
    assert result.max_abs == 0.0


def test_ids_must_be_equal_whatever_the_tolerance() -> None:
    ids = np.arange(3)
    for other in (ids + 1, ids[:2]):
        comparison = Comparison("ids", 1e9)
        comparison.add_ids("codes", ids, other)
        assert not comparison.result().passed


def test_a_report_without_checks_fails() -> None:
    report = Report("kv-cache", {}, ())
    assert not report.passed
    assert json.loads(report.as_json())["max_abs"] is None


def test_a_report_is_valid_json_whatever_was_found() -> None:
    comparison = Comparison("holes", 0.0)
    comparison.add("a", ONES, ONES * np.nan)
    values = json.loads(Report("kv-cache", {}, (comparison.result(),)).as_json())
    assert values["passed"] is False
    assert values["checks"][0]["max_abs"] is None
