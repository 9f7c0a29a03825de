"""Operators in cells of IPython: their source, cells that run again, %timeit, errors that name the cell.

The same cells run in a shell in this process, and in a kernel of Jupyter in its own.
"""

import pytest

nbformat = pytest.importorskip(
    "nbformat", reason="not run: the tools of docs/requirements.txt are not installed"
)

KERNEL = """
@polyop.kernel
def scaled_in_cells(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * 2
    return y
"""
OPERATOR = "op = polyop.operator('cells::op(Tensor x) -> Tensor', lambda x: x * 2, batch='elementwise')"
SOURCE = """
from polyop import operator, source
C = '''int twice(int nparam, void **params, int *ndims, long **shapes, const char **dtypes, void *s, void *e) {
  for (long i = 0; i < shapes[0][0]; ++i) ((double *)params[1])[i] = 2 * ((double *)params[0])[i];
  return 0;
}'''
native = operator('cells::native(Tensor x) -> Tensor', source(code=C, function='twice', language='c'), infer='x')
"""
CELLS = [
    # a cell, and what it prints; the words of an error where it raises one
    ("import numpy as np, polyop\nx = np.ones(3)", ""),
    (KERNEL, ""),
    ("first = scaled_in_cells\nprint(first(x))", "[2. 2. 2.]"),
    (KERNEL.replace("* 2", "* 3"), ""),  # the cell, changed and run again
    ("print(scaled_in_cells(x), first(x))", "[3. 3. 3.] [2. 2. 2.]"),
    ("print(scaled_in_cells.vjp(x)[1](x)[0])", "[3. 3. 3.]"),
    (KERNEL.replace("* 2", "* 3"), ""),  # the same cell once more
    ("print(scaled_in_cells(x))", "[3. 3. 3.]"),
    ("%timeit -n 2 -r 2 scaled_in_cells(x)", "per loop"),
    (
        f"%time x.sum()\n{KERNEL.replace('* 2', '* 5')}\nprint(scaled_in_cells(x))",
        "[5. 5. 5.]",
    ),  # not plain Python
    (OPERATOR, ""),
    (OPERATOR.replace("* 2", "* 4"), ""),
    ("print(op(x))", "[4. 4. 4.]"),
    (SOURCE, ""),
    (SOURCE.replace("= 2 *", "= 7 *"), ""),
    ("print(native(x))", "[7. 7. 7.]"),
    (
        KERNEL.replace("x[i] * 2", "unknown(x[i])") + "\nscaled_in_cells(x)",
        "defined at cell In[17], line 5\n    y[i] = unknown(x[i])",
    ),
    (
        KERNEL.replace("x[i]", "x[i + 1]") + "\nscaled_in_cells(x)",
        "defined at cell In[18], line 5, operator at cell In[18], line 1",
    ),
    (
        f"for _ in range(2):\n    {OPERATOR.replace('::op', '::loop')}",
        "the name is taken by the operator defined at cell In[19], line 2",
    ),
    ("print(scaled_in_cells)", "defined at cell In[18], line 1"),
]


@pytest.mark.slow
def test_cells_in_a_shell(capsys):
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    try:
        shell.run_line_magic("colors", "nocolor")
        for cell, expected in CELLS:
            done = shell.run_cell(cell.strip("\n"), store_history=True)
            printed = capsys.readouterr().out
            problem = done.error_in_exec or done.error_before_exec
            assert expected in (str(problem) if problem else printed), (cell, problem, printed)
            assert problem is None or "defined at" in expected, (cell, problem)
    finally:
        InteractiveShell.clear_instance()


@pytest.mark.slow
def test_cells_in_a_kernel_of_jupyter():
    from nbclient import NotebookClient

    cells = [nbformat.v4.new_code_cell(cell.strip("\n")) for cell, _ in CELLS]
    notebook = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(notebook, kernel_name="python3", allow_errors=True, timeout=300).execute()
    for cell, (_, expected) in zip(notebook.cells, CELLS, strict=True):
        errors = [output.evalue for output in cell.outputs if output.output_type == "error"]
        printed = "".join(output.get("text", "") for output in cell.outputs)
        assert expected in (errors[0] if errors else printed), cell.source
        assert not errors or "defined at" in expected, cell.source
