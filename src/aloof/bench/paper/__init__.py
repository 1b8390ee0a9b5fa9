"""The paper as a whole: every cell, what fills it, what is missing, and the page about it.

>>> from aloof.bench.paper import paper_cells
>>> sum(cell.table == "ill-trained" for cell in paper_cells())
5
"""

from aloof.bench.paper.cells import TABLES, Cell, paper_cells
from aloof.bench.paper.page import make_page
from aloof.bench.paper.queue import choose, run_task
from aloof.bench.paper.status import Status, look

__all__ = [
    "TABLES",
    "Cell",
    "Status",
    "choose",
    "look",
    "make_page",
    "paper_cells",
    "run_task",
]
