"""Files in a form, as browsers and curl send them."""

from __future__ import annotations

from dataclasses import dataclass

from aloof.exceptions import MissingExtraError
from aloof.serve.limits import Refused
from aloof.serve.served import Content

try:
    from python_multipart.exceptions import FormParserError
    from python_multipart.multipart import MultipartParser, parse_options_header
except ImportError as error:
    raise MissingExtraError("python-multipart", "serve", "The server") from error

__all__ = ["FORM", "FormFile", "read_form"]

FORM = "multipart/form-data"
_LONGEST_NAME = 255


@dataclass(frozen=True)
class FormFile:
    """A file of a form.

    Attributes
    ----------
    name
        As the client calls it.
    data
        Its content.
    """

    name: str
    data: bytes


class _Parts:
    """Takes the parts of a form as the parser meets them."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.files: list[FormFile] = []
        self._data: list[bytes] = []
        self._header: list[bytes] = [b"", b""]
        self._name = ""

    def on_part_begin(self) -> None:
        if len(self.files) >= self._most:
            raise Refused(413, f"A form may have at most {self._most:,} files.")
        self._data, self._name = [], ""

    def on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._header[0] += data[start:end]

    def on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._header[1] += data[start:end]

    def on_header_end(self) -> None:
        if self._header[0].lower() == b"content-disposition":
            options = parse_options_header(self._header[1])[1]
            name = options.get(b"filename") or options.get(b"name") or b""
            self._name = name.decode("utf-8", "replace")[:_LONGEST_NAME]
        self._header = [b"", b""]

    def on_part_data(self, data: bytes, start: int, end: int) -> None:
        self._data.append(data[start:end])

    def on_part_end(self) -> None:
        self.files.append(FormFile(self._name, b"".join(self._data)))


def read_form(content: Content, most: int) -> list[FormFile]:
    """Return the files of a form.

    Parameters
    ----------
    content
        The body.
    most
        How many files there may be.
    """
    boundary = content.parameters.get("boundary", "")
    if not boundary:
        raise Refused(400, "The form does not say what separates its parts.")
    parts = _Parts(most)
    names = [name for name in dir(parts) if name.startswith("on_")]
    try:
        parser = MultipartParser(boundary, {name: getattr(parts, name) for name in names})  # type: ignore[arg-type]
        parser.write(content.data)
        parser.finalize()
    except (FormParserError, UnicodeError, ValueError) as error:
        raise Refused(400, "The body is not a valid form.") from error
    return parts.files
