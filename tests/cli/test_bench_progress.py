"""Progress of benchmarks where there is no terminal."""

from __future__ import annotations

from aloof.bench.workers import Event
from aloof.cli.bench.progress import Log


def test_a_log_has_failures_at_once_and_a_line_every_five_minutes() -> None:
    lines: list[str] = []
    now = [0.0]
    log = Log(lines.append, lambda: now[0])
    log(Event("planned", "", 40))
    log(Event("started", "deep-sad: cardio", 2))
    for second in range(0, 660, 60):
        now[0] = float(second)
        log(Event("step", "deep-sad: cardio", 2, second // 6, 150, "epoch"))
    log(Event("outcome", "deep-sad: cardio", 1))
    assert lines == [
        "0 of 40 cases after 5.0 minutes; deep-sad: cardio: epoch 50 of 150",
        "0 of 40 cases after 10 minutes; deep-sad: cardio: epoch 100 of 150",
    ]
    log(Event("finished", "deep-sad: cardio", 2, errors=("no memory", "no memory")))
    assert lines[2:] == ["deep-sad: cardio failed: no memory"]
    now[0] = 8000.0
    log(Event("started", "mml: shuttle", 1))
    assert lines[3:] == ["1 of 40 cases after 2 hours; mml: shuttle"]
