"""The time of an import, in new processes, without the start of the interpreter."""

from measure import Measured, Row, Settings, fresh_process, summary

CODE = "import time; start = time.perf_counter(); import {}; print(time.perf_counter() - start)"


def imports(settings: Settings) -> Measured:
    times: dict[str, list[float]] = {"polyop": [], "numpy": []}
    for name in times:
        fresh_process(CODE.format(name))  # files into the page cache, bytecode written
    for turn in range(settings.processes):
        for name in sorted(times, reverse=bool(turn % 2)):
            times[name].append(fresh_process(CODE.format(name)))
    return summary(times["polyop"], times["numpy"])


ROWS = [Row("import polyop", "import numpy", 2.0, imports)]
