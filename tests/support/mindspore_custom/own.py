"""MindSpore's own Custom on the programs: prints a line for each, as JSON.

python own.py FOLDER FIRST: from the program with this number on. A program that kills the process is the last line's
next; the caller goes on behind it.
"""

from __future__ import annotations

import json
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from mindspore_custom.rows import World
from mindspore_custom.ways import ROWS, outcome

HERE = pathlib.Path(__file__).parent


def main(folder: pathlib.Path, start: int) -> None:
    """Run the programs from number ``start`` on, in both modes."""
    import mindspore as ms
    from mindspore.ops.operations.custom_ops import _compile_aot

    shutil.copy(HERE / "kernels.cc", folder)
    shutil.copy(HERE.parents[1] / "sources" / "mindspore_aot_extra.h", folder / "custom_aot_extra.h")
    source = str(folder / "kernels.cc")
    world = World(ms, ms.ops.Custom, source, str(pathlib.Path(_compile_aot(source)).resolve()))
    for number, row in list(enumerate(ROWS))[start:]:
        for mode in ("pynative", "graph"):
            if row.own is None:
                text = "not run"
            else:
                print(json.dumps([number, mode, "died"]), flush=True)
                try:
                    text = outcome(world, row, mode == "graph")
                except Exception as problem:
                    text = f"{type(problem).__name__}: {str(problem).strip()[:160]}"
            print(json.dumps([number, mode, text]), flush=True)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), int(sys.argv[2]))
