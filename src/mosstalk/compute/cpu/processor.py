"""Which processor this is: a name for reports, and to tell one from another."""

import os
import platform

# Of /proc/cpuinfo, whatever the architecture: the maker's name of the part, and its revision.
_FIELDS = (
    "model name",
    "cpu family",
    "model",
    "stepping",
    "microcode",
    "CPU implementer",
    "CPU part",
    "CPU variant",
    "CPU revision",
)
_FIRST_BYTES = 4096  # the first of perhaps hundreds of cores


def processor_name() -> str:
    """The processor's name and revision as the system gives them; its architecture at least."""
    known = _cpuinfo()
    parts = [known.pop("model name", "")]
    parts += [f"{name} {known[name]}" for name in _FIELDS if name in known]
    named = ", ".join(part for part in parts if part)
    return named or os.environ.get("PROCESSOR_IDENTIFIER") or platform.machine()


def _cpuinfo() -> dict[str, str]:
    """The first core's fields of /proc/cpuinfo; none where there is no such file."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            first, _, _ = file.read(_FIRST_BYTES).partition("\n\n")
    except OSError:
        return {}
    pairs = (line.partition(":") for line in first.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}
