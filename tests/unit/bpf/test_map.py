"""Records of BPF maps."""

from gilscope.bpf.map import RecordLayout

_DESCRIPTION = {
    "size": 40,
    "fields": [
        {"name": "tgid", "offset": 0, "code": "I", "count": 0},
        {"name": "offset", "offset": 4, "code": "i", "count": 0},
        {"name": "slots", "offset": 8, "code": "Q", "count": 3},
        {"name": "last", "offset": 32, "code": "Q", "count": 0},
    ],
}
_WITH_TEXT = {
    "size": 16,
    "fields": [
        {"name": "tgid", "offset": 0, "code": "I", "count": 0},
        {"name": "name", "offset": 4, "code": "B", "count": 8},
        {"name": "is_over", "offset": 12, "code": "B", "count": 0},
    ],
}


def test_record_survives_packing() -> None:
    """
    Signed numbers and arrays come back as they went in.
    """
    layout = RecordLayout.from_json(_DESCRIPTION)
    record = {"tgid": 7, "offset": -16, "slots": (1, 2, 1 << 63), "last": 9}

    assert record == layout.unpack(layout.pack(record))
    assert 40 == len(layout.pack(record))


def test_missing_fields_are_zero() -> None:
    """
    A record may be given in part.
    """
    layout = RecordLayout.from_json(_DESCRIPTION)

    assert {"tgid": 0, "offset": 0, "slots": (0, 0, 0), "last": 5} == layout.unpack(
        layout.pack({"last": 5})
    )


def test_arrays_of_nothing_are_one() -> None:
    """
    Of the histograms of a thousand processes most are empty, and each has hundreds of slots.
    """
    layout = RecordLayout.from_json(_DESCRIPTION)
    some, none, nothing = (
        layout.unpack(layout.pack({"slots": slots, "last": last}))
        for last, slots in enumerate([(0, 0, 1 << 63), (0, 0, 0), (0, 0, 0)])
    )

    assert (0, 0, 1 << 63) == some["slots"]
    assert none["slots"] is nothing["slots"]
    assert (1, 2) == (none["last"], nothing["last"])


def test_array_of_bytes_is_one_value() -> None:
    """
    A text with what is behind it; one that is left out is zeros, and one byte is a number.
    """
    layout = RecordLayout.from_json(_WITH_TEXT)
    record = {"tgid": 7, "name": b"worker\0\0", "is_over": 1}

    assert record == layout.unpack(layout.pack(record))
    assert {"tgid": 7, "name": bytes(8), "is_over": 0} == layout.unpack(layout.pack({"tgid": 7}))
