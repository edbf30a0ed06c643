"""What a check has compared, and whether that is enough to pass: the part that must not lie.

A check that compared nothing fails. So does one with a value that is not finite, with shapes that
do not agree, or with an expectation that is zero everywhere. Tolerances are relative to the
largest expected value.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

# equal: within the tolerance; differ: a control, which must be outside it.
Expectation = Literal["equal", "differ"]


@dataclass(frozen=True, slots=True)
class Profile:
    """Where a check found its differences: the largest at each place along an axis."""

    axis: str  # "position", "layer"
    places: tuple[int, ...]
    max_rel: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One row of a report.

    Attributes:
        compared: number of values.
        max_abs: largest difference; of a control, that of its closest comparison. None where
            nothing could be compared.
        mean_abs: mean difference.
        max_rel: as `max_abs`, relative to the largest expected value.
        non_finite: values that are NaN or infinite.
        problem: why it failed, "" if it passed.
        profiles: where the differences are.
    """

    name: str
    expects: Expectation
    compared: int
    max_abs: float | None
    mean_abs: float | None
    max_rel: float | None
    non_finite: int
    tolerance: float
    passed: bool
    problem: str
    profiles: tuple[Profile, ...] = ()


class Comparison:
    """Collects the comparisons of one check."""

    def __init__(self, name: str, tolerance: float, expects: Expectation = "equal") -> None:
        self.name = name
        self.tolerance = tolerance
        self.expects: Expectation = expects
        self._problems: list[str] = []
        self._compared = 0
        self._non_finite = 0
        self._sum_abs = 0.0
        self._abs: list[float] = []  # the largest difference of each comparison
        self._rel: list[float] = []
        self._profiles: dict[str, dict[int, float]] = {}

    def add(
        self,
        what: str,
        expected: NDArray[Any],
        found: NDArray[Any],
        *,
        positions: Sequence[int] | None = None,
        layer: int | None = None,
    ) -> None:
        """Compare two arrays of real numbers; `what` names them in the report.

        `positions` of the first axis and the `layer` say where a difference belongs in profiles.
        """
        if expected.shape != found.shape:
            self.fail(f"{what}: shape {found.shape}, not {expected.shape}")
            return
        if not expected.size:
            self.fail(f"{what}: nothing to compare")
            return
        wide, other = expected.astype(np.float64), found.astype(np.float64)
        finite = np.isfinite(wide) & np.isfinite(other)
        self._compared += expected.size
        if not finite.all():
            count = int(expected.size - finite.sum())
            self._non_finite += count
            self.fail(f"{what}: {count} values are not finite")
            return
        peak = float(np.abs(wide).max())
        if peak == 0:
            self.fail(f"{what}: all expected values are zero")
            return
        difference = np.abs(wide - other)
        self._record(what, float(difference.max()), peak)
        self._sum_abs += float(difference.sum())
        if layer is not None:
            self._mark("layer", layer, float(difference.max()) / peak)
        if positions is not None:
            largest = difference.reshape(len(difference), -1).max(axis=1) / peak
            for position, rel in zip(positions, largest.tolist(), strict=True):
                self._mark("position", position, rel)

    def add_ids(self, what: str, expected: NDArray[Any], found: NDArray[Any]) -> None:
        """Compare two arrays of ids, which must be equal whatever the tolerance."""
        if expected.shape != found.shape or not expected.size:
            self.fail(f"{what}: ids of shape {found.shape}, not {expected.shape}")
            return
        self._compared += expected.size
        different = int((expected != found).sum())
        if different:
            self.fail(f"{what}: {different} of {expected.size} ids differ")

    def require(self, condition: bool, problem: str) -> None:
        """Fail with `problem` unless `condition`."""
        if not condition:
            self.fail(problem)

    def fail(self, problem: str) -> None:
        self._problems.append(problem)

    def result(self) -> CheckResult:
        """The outcome; call it once all has been compared."""
        if not self._compared and not self._problems:
            self.fail("nothing was compared")
        chosen = max if self.expects == "equal" else min
        return CheckResult(
            name=self.name,
            expects=self.expects,
            compared=self._compared,
            max_abs=chosen(self._abs, default=None),
            mean_abs=self._sum_abs / self._compared if self._abs else None,
            max_rel=chosen(self._rel, default=None),
            non_finite=self._non_finite,
            tolerance=self.tolerance,
            passed=not self._problems,
            problem=self._problems[0] if self._problems else "",
            profiles=tuple(
                Profile(axis, tuple(sorted(found)), tuple(found[i] for i in sorted(found)))
                for axis, found in self._profiles.items()
            ),
        )

    def _mark(self, axis: str, place: int, rel: float) -> None:
        profile = self._profiles.setdefault(axis, {})
        profile[place] = max(rel, profile.get(place, 0.0))

    def _record(self, what: str, max_abs: float, peak: float) -> None:
        rel = max_abs / peak
        self._abs.append(max_abs)
        self._rel.append(rel)
        if self.expects == "equal" and not rel <= self.tolerance:
            self.fail(f"{what}: differs by {max_abs:.3g} of {peak:.3g}")
        if self.expects == "differ" and not rel > self.tolerance:
            self.fail(f"{what}: does not differ, but must")
