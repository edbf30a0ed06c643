"""docs/parity.md tells which check catches which fault: no check of the tests is left out."""

import re
from pathlib import Path

import pytest
import test_codec_mutations
import test_mutations
import test_streams_mutations

TEXT = (Path(__file__).parents[2] / "docs" / "parity.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("section", "faults"),
    [
        ("kv-cache", test_mutations.FAULTS),
        ("codec", test_codec_mutations.FAULTS),
        ("streams", test_streams_mutations.FAULTS),
    ],
)
def test_every_check_that_catches_a_fault_is_in_the_table(
    section: str, faults: list[tuple[object, ...]]
) -> None:
    found = re.search(rf"^## {section}.*?(?=^## |\Z)", TEXT, re.M | re.S)
    assert found is not None
    for fault in faults:
        caught_by = fault[1]
        assert isinstance(caught_by, set)
        for check in caught_by:
            name = "stream vs whole" if check.startswith("stream vs whole") else check
            assert name in found.group(), f"{check} catches {fault[0]}"
