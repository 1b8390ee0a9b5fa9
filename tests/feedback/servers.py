"""A PostgreSQL server for tests, from Debian's packages."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

BIN = next(
    (
        folder
        for folder in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
        if (folder / "initdb").exists()
    ),
    None,
)


class PostgreSQL:
    """A server of its own in a folder; as another user where we are root, as it wants."""

    def __init__(self, folder: Path) -> None:
        assert BIN is not None
        self.folder = folder / "data"
        self.log = folder / "log"
        self._user = {}
        if os.geteuid() == 0:
            postgres = pwd.getpwnam("postgres")
            shutil.chown(folder, postgres.pw_uid, postgres.pw_gid)
            self._user = {"user": postgres.pw_uid, "group": postgres.pw_gid}
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self._run("initdb", "-D", str(self.folder), "-A", "trust", "-U", "aloof")

    @property
    def url(self) -> str:
        return f"postgresql://aloof@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -k {self.folder} -c fsync=off"
        where = ["-D", str(self.folder), "-l", str(self.log)]
        self._run("pg_ctl", "-w", *where, "-o", options, "start")

    def stop(self) -> None:
        self._run("pg_ctl", "-w", "-D", str(self.folder), "-m", "immediate", "stop")

    def _run(self, name: str, *arguments: str) -> None:
        assert BIN is not None
        done = subprocess.run(
            [str(BIN / name), *arguments],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            cwd="/",
            timeout=120,
            **self._user,  # type: ignore[call-overload]
        )
        assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgreSQL]:
    if BIN is None:
        pytest.skip("there is no PostgreSQL in /usr/lib/postgresql")
    # Not in pytest's folder: that is closed to the server's user.
    with tempfile.TemporaryDirectory(prefix="aloof-", ignore_cleanup_errors=True) as folder:
        server = PostgreSQL(Path(folder))
        server.start()
        try:
            yield server
        finally:
            server.stop()
