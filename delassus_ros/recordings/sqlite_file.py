"""Reading one SQLite file of rosbag2, with messages that a crash left in its log.

A recorder that was killed leaves its last messages in a file beside the database, ``-wal`` or
``-journal``. SQLite merges this log into the database when the database is opened, and writes to
both files: databases with a log are copied first, so that the recording does not change.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Container, Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from delassus_ros.recordings.recorded_file import Recorded, RecordedFile, RecordingError

_MAGIC = b"SQLite format 3\0"
_LOGS = ("-wal", "-journal")
_COLUMNS = {"topics": {"id", "name", "type", "serialization_format"},
            "messages": {"topic_id", "timestamp", "data"}}  # fmt: skip


def logs_of(path: Path) -> list[Path]:
    """Return the log files beside a database, with messages that the database lacks."""
    found = [path.with_name(path.name + end) for end in _LOGS]
    return [log for log in found if log.is_file() and log.stat().st_size]


class SqliteFile(RecordedFile):
    """A database of rosbag2; its position counts bytes in proportion to messages."""

    def messages(self, topics: Container[str] | None) -> Iterator[Recorded]:
        """Yield the messages of some topics, or of all, in order of time, up to damage."""
        with self._path.open("rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                raise RecordingError(
                    f"{self._shown}: not an SQLite database; its first bytes differ"
                )
        try:
            with closing(self._opened()) as database:
                self._check_tables(database)
                yield from self._messages(database, topics)
        except sqlite3.Error as error:
            self._damaged(str(error))

    def _opened(self) -> sqlite3.Connection:
        # Without a log, SQLite merges nothing, and needs no lock file, so that a read-only folder
        # is possible.
        mode = "mode=rw" if logs_of(self._path) else "immutable=1"
        database = sqlite3.connect(f"file:{quote(str(self._path.resolve()))}?{mode}", uri=True)
        database.execute("pragma trusted_schema = off")
        return database

    def _messages(
        self, database: sqlite3.Connection, topics: Container[str] | None
    ) -> Iterator[Recorded]:
        counts = dict(
            database.execute("select topic_id, count(*) from messages group by topic_id")
        )
        names = {}
        for number, name, kind, encoding in database.execute(
            "select id, name, type, serialization_format from topics"
        ):
            if counts.get(number):
                self._found.note(str(name), str(encoding), str(kind))
                if topics is None or name in topics:
                    names[number] = str(name)
        expected = sum(counts[number] for number in names)
        strange = done = 0
        for number, time, data in database.execute(
            "select topic_id, timestamp, data from messages where topic_id in "
            f"({', '.join('?' * len(names))}) order by timestamp",
            tuple(names),
        ):
            done += 1
            self.position = self._size * done // expected
            if isinstance(time, int) and isinstance(data, bytes):
                yield Recorded(time, time, names[number], data)
            else:
                strange += 1
        self.position = self._size
        if strange:
            self._damaged(
                f"{strange} messages are left out: their time is no integer, or they are no bytes"
            )

    def _check_tables(self, database: sqlite3.Connection) -> None:
        """Refuse a database that is not of rosbag2, e.g. a view, which may have endless rows."""
        for table, columns in _COLUMNS.items():
            stored = database.execute(
                "select sql from sqlite_master where type = 'table' and name = ?", (table,)
            ).fetchone()
            there = {name for _, name, *_ in database.execute(f"pragma table_info({table})")}
            if stored is None or "virtual" in str(stored[0]).lower() or not columns <= there:
                raise RecordingError(
                    f"{self._shown}: not a database of rosbag2: it has no table {table!r} with "
                    f"{', '.join(sorted(columns))}"
                )
