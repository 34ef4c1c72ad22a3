"""Archives and JSON that are not what a measurement leaves behind: refused whole, before anything of them is used."""

from __future__ import annotations

import io
import struct
import zipfile

import pytest

from kernelgate.ci.github.untrusted_artifact import RefusedError, checked_record, members
from tests.ci.github.test_untrusted_artifact import HONEST, KNOWN


def packed(*files: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, data in files:
            archive.writestr(zipfile.ZipInfo(name), data, method)
    return buffer.getvalue()


def lying() -> bytes:
    """The central directory says that the file has ten bytes."""
    data = bytearray(packed(("run.json", b"0" * 9_000_000)))
    where = data.rindex(b"PK\x01\x02")
    data[where + 24 : where + 28] = struct.pack("<I", 10)
    return bytes(data)


ARCHIVES = {
    "5,000 members": packed(*((f"{number}.json", b"{}") for number in range(5000))),
    "an archive inside": packed(("run.zip", packed(("run.json", b"{}")))),
    "bzip2": packed(("run.json", b"{}"), method=zipfile.ZIP_BZIP2),
    "LZMA": packed(("run.json", b"{}"), method=zipfile.ZIP_LZMA),
    "a lie about the size": lying(),
    "a bomb": packed(("run.json", b"0" * 50_000_000)),
    "cut short": packed(("run.json", b"{}" * 1000))[:-30],
    "no archive": b"<html>",
}


@pytest.mark.parametrize("data", ARCHIVES.values(), ids=ARCHIVES.keys())
def test_an_archive_of_another_kind_is_refused(data: bytes) -> None:
    with pytest.raises(RefusedError, match="is refused"):
        members(data)


TEXT = HONEST.decode()
JSON = {
    "NaN": TEXT.replace('"run"', '"notes": NaN, "run"', 1).encode(),
    "1e999": TEXT.replace('"run"', '"notes": 1e999, "run"', 1).encode(),
    "a key twice": TEXT.replace('"run"', '"run": {}, "run"', 1).encode(),
    "a key twice, once escaped": TEXT.replace('"run"', '"r\\u0075n": {}, "run"', 1).encode(),
    "depth 100,000": b"[" * 100_000,
    "5,000 digits": TEXT.replace('"run"', f'"notes": {"9" * 5000}, "run"', 1).encode(),
    "BOM": b"\xef\xbb\xbf" + HONEST,
    "UTF-16": TEXT.encode("utf-16"),
    "surrogate": TEXT.replace('"run"', '"\\ud800": 1, "run"', 1).encode(),
    "empty": b"",
    "text": b'"run"',
}


@pytest.mark.parametrize("data", JSON.values(), ids=JSON.keys())
def test_json_of_another_kind_is_refused(data: bytes) -> None:
    assert checked_record(HONEST, KNOWN)
    with pytest.raises(RefusedError, match="is refused") as caught:
        checked_record(data, KNOWN)
    assert "\n" not in str(caught.value)
    str(caught.value).encode()
