"""Data sets: every published form becomes the same arrays, and what is not the published file becomes one sentence."""

import copy
import functools
import gzip
import hashlib
import http.server
import io
import pickle
import tarfile
import threading
import zipfile

import numpy as np
import pytest

from steptime.datasets import DatasetError, splits, sums, whole

RANDOM = np.random.RandomState(1)
IMAGES = RANDOM.randint(0, 256, (20, 3, 32, 32)).astype(np.uint8)
LABELS = np.arange(20) % 10
DIGITS = RANDOM.randint(0, 256, (20, 1, 4, 4)).astype(np.uint8)


def idx(array):
    header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
    return header + array.astype(np.uint8).tobytes()


def records(images, labels):
    return np.concatenate(
        [labels[:, None].astype(np.uint8), images.reshape(len(images), -1)], axis=1
    ).tobytes()


def pickled(images, labels):
    return pickle.dumps(
        {b"data": images.reshape(len(images), -1), b"labels": labels.tolist()}, protocol=2
    )


IDX = {
    "train-images": idx(DIGITS[:12, 0]),
    "train-labels": idx(LABELS[:12]),
    "t10k-images": idx(DIGITS[12:, 0]),
    "t10k-labels": idx(LABELS[12:]),
}
BINARY = {"b1.bin": records(IMAGES[:6], LABELS[:6]), "b2.bin": records(IMAGES[6:12], LABELS[6:12])}
BINARY["test.bin"] = records(IMAGES[12:], LABELS[12:])
PYTHON = {"b1": pickled(IMAGES[:6], LABELS[:6]), "b2": pickled(IMAGES[6:12], LABELS[6:12])}
PYTHON["test"] = pickled(IMAGES[12:], LABELS[12:])
CSV = {
    "all.csv": "\n".join(
        ",".join(map(str, [*d.ravel(), n])) for d, n in zip(DIGITS, LABELS, strict=True)
    ).encode()
}


def entry(shape, contents, counts, *versions):
    """An entry of the catalogue with the sums of these files."""
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    classes = [str(label) for label in range(10)]
    words = {
        "label": "Pictures",
        "shape": shape,
        "classes": classes,
        "counts": dict(zip(("train", "test"), counts, strict=True)),
    }
    return words | {"sums": sums, "versions": list(versions)}


SMALL = entry(
    [1, 4, 4],
    IDX,
    (12, 8),
    {
        "format": "idx",
        "train": ["train-images", "train-labels"],
        "test": ["t10k-images", "t10k-labels"],
    },
)
CIFAR = entry(
    [3, 32, 32],
    BINARY | PYTHON,
    (12, 8),
    {
        "format": "cifar_binary",
        "archive": "binary.tar.gz",
        "train": ["b1.bin", "b2.bin"],
        "test": ["test.bin"],
    },
    {"format": "cifar_python", "archive": "python.tar.gz", "train": ["b1", "b2"], "test": ["test"]},
)


def folder(path, contents, packed=True):
    path.mkdir(parents=True)
    for name, content in contents.items():
        (path / (name + ".gz" * packed)).write_bytes(gzip.compress(content) if packed else content)
    return path


def archive(path, contents):
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as file:
        for name, content in contents.items():
            member = tarfile.TarInfo(f"inner/{name}")
            member.size = len(content)
            file.addfile(member, io.BytesIO(content))
    return path


@pytest.fixture
def read(tmp_path):
    """A function that prepares a data set and returns its splits."""

    def make(entry, location):
        paths = tmp_path / "out/train.npz", tmp_path / "out/test.npz"
        splits.prepare(entry, str(location), *paths)
        return [dict(np.load(path)) for path in paths]

    make.out = tmp_path / "out"
    return make


def is_whole(found, images):
    train, test = found
    for split, chosen in ((train, slice(12)), (test, slice(12, None))):
        assert split["images"].dtype == np.uint8 and split["labels"].dtype == np.int64
        assert np.array_equal(split["images"], images[chosen])
        assert np.array_equal(split["labels"], LABELS[chosen])
        assert str(split["name"]) == "Pictures" and split["classes"].tolist() == [
            str(label) for label in range(10)
        ]
    content = images[:12].tobytes() + LABELS[:12].astype(np.int64).tobytes()
    assert str(train["sha256"]) == hashlib.sha256(content).hexdigest()


def zipped(path, contents):
    with zipfile.ZipFile(path, "w") as file:
        for name, content in contents.items():
            file.writestr(f"inner/{name}", content)
    return path


def renamed(place, name):
    return folder(place / "x", {name(each): content for each, content in IDX.items()}, False)


def two_roots(place):
    """Two data sets whose files are called alike (c2-mnist-two-roots, pytorch/vision#599)."""
    other = {name: content[:16] + content[16:][::-1] for name, content in IDX.items()}
    folder(place / "x/MNIST/raw", IDX)
    return folder(place / "x/fashion_mnist", other).parent


def stale_raw(place):
    """An unpacking that was broken off (c3-mnist-stale-raw, pytorch/vision#541)."""
    (folder(place / "x", IDX) / "train-images").touch()
    return place / "x"


def broken_gz(place):
    (folder(place / "x", IDX, False) / "train-images.gz").write_bytes(b"<html>")
    return place / "x"


def npz(place):
    """The mnist.npz of Keras (c4-mnist-zip-npz)."""
    arrays = {"x_train": DIGITS[:12, 0], "y_train": LABELS[:12]}
    np.savez(place / "mnist.npz", x_test=DIGITS[12:, 0], y_test=LABELS[12:], **arrays)
    return place / "mnist.npz"


FORMS = {
    "gz": lambda place: folder(place / "x", IDX),
    "raw": lambda place: folder(place / "x", IDX, packed=False),
    "two roots": two_roots,
    "stale raw": stale_raw,
    "broken gz": broken_gz,
    "npz": npz,
    "npz in a folder": lambda place: npz(place).parent,
    "zip": lambda place: zipped(place / "x.ZIP", IDX),
    "zip of gz": lambda place: zipped(
        place / "x.zip", {f"{name}.gz": gzip.compress(content) for name, content in IDX.items()}
    ),
    "zip in a folder": lambda place: zipped(place / "x.zip", IDX).parent,
    "tar": lambda place: archive(place / "x.tgz", IDX),
    "dotted": lambda place: renamed(place, lambda name: name.replace("-", ".")),
    "twice fetched": lambda place: renamed(place, lambda name: f"{name} (1)"),
    "other names": lambda place: renamed(place, lambda name: f"{sorted(IDX).index(name)}.bin"),
    "one file of each kind": lambda place: (
        folder(place / "x", {"train-images": IDX["train-images"]})
        and zipped(
            place / "x/rest.zip", {k: v for k, v in IDX.items() if k != "train-images"}
        ).parent
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_files_are_found_by_their_sums_in_the_forms_that_people_have(tmp_path, read, form):
    is_whole(read(SMALL, FORMS[form](tmp_path)), DIGITS)


def test_both_versions_of_cifar_are_the_same_images(tmp_path, read):
    is_whole(read(CIFAR, archive(tmp_path / "binary.tar.gz", BINARY)), IMAGES)
    is_whole(read(CIFAR, archive(tmp_path / "python.tar.gz", PYTHON)), IMAGES)
    is_whole(read(CIFAR, folder(tmp_path / "plain", PYTHON, packed=False)), IMAGES)
    is_whole(read(CIFAR, archive(tmp_path / "inside/python.tar.gz", PYTHON).parent), IMAGES)


def test_files_of_a_server(tmp_path, read):
    folder(tmp_path / "served/mnist", IDX)
    archive(tmp_path / "served/binary.tar.gz", BINARY)
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=tmp_path / "served")
    with http.server.ThreadingHTTPServer(("localhost", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        place = f"http://localhost:{server.server_port}"
        try:
            is_whole(read(SMALL, f"{place}/mnist/"), DIGITS)
            is_whole(read(CIFAR, f"{place}/binary.tar.gz"), IMAGES)
            with pytest.raises(DatasetError, match="cannot be had"):
                read(SMALL, f"{place}/nothing")
        finally:
            server.shutdown()


def test_a_subset_without_test_images_holds_out_a_fifth_of_each_class(tmp_path, read):
    many = {"all.csv": b"\n".join([CSV["all.csv"]] * 5)}
    subset = entry([1, 4, 4], many, (80, 20), {"format": "csv", "all": ["all.csv"]})
    train, test = read(subset, folder(tmp_path / "x", many))
    assert np.bincount(test["labels"]).tolist() == [2] * 10
    assert np.bincount(train["labels"]).tolist() == [8] * 10
    again = read(subset, tmp_path / "x")
    assert np.array_equal(again[1]["images"], test["images"])


def test_a_subset_under_the_name_of_the_whole_is_told_by_its_own(tmp_path):
    part = entry([3, 32, 32], BINARY, (12, 8), {"format": "cifar_binary", "all": ["b1.bin"]})
    catalogue = {"whole": SMALL, "part": part | {"subset_of": "whole"}}
    lies = str(folder(tmp_path / "a", {"b1.bin": BINARY["b1.bin"]}))
    said = " What lies there is Pictures: write part in the place of whole."
    assert splits.rather(catalogue, "whole", lies) == said
    assert splits.rather(catalogue, "whole", str(folder(tmp_path / "b", IDX))) == ""


def test_what_is_not_the_published_file_is_one_sentence_and_nothing_is_written(tmp_path, read):
    def refused(entry, location, words):
        with pytest.raises(DatasetError) as error:
            read(entry, location)
        sentence = str(error.value)
        assert words in sentence and sentence.endswith(".") and "\n" not in sentence
        assert not read.out.exists() or list(read.out.iterdir()) == []

    def broken(name, contents, file, content):
        return folder(tmp_path / name, contents | {file: content}, packed=False)

    refused(SMALL, tmp_path / "nowhere", "cannot be read (No such file")
    single = folder(tmp_path / "one", {"train-images": IDX["train-images"]}) / "train-images.gz"
    refused(SMALL, single, "there is no file train-labels or train-labels.gz and 2 more in")
    (tmp_path / "page.zip").write_text("<html>")
    refused(SMALL, tmp_path / "page.zip", "page.zip is not a whole archive")
    (tmp_path / "digits.rar").write_text("Rar!")
    refused(SMALL, tmp_path / "digits.rar", "files are read as they are or in .tar.gz, ")
    missing = {name: content for name, content in IDX.items() if name != "t10k-labels"}
    refused(SMALL, folder(tmp_path / "a", missing), "no file t10k-labels or t10k-labels.gz in")
    other = idx(255 - DIGITS[:12, 0])
    refused(
        SMALL,
        broken("b", IDX, "train-images", other),
        "train-images is not the published file: its sha256 is",
    )
    refused(
        SMALL,
        broken("c", IDX, "train-images", idx(DIGITS[:12, 0])[:-5]),
        "announces 12 x 4 x 4 bytes and holds 187",
    )
    narrow = idx(DIGITS[:12, 0, :3])
    refused(
        SMALL,
        broken("d", IDX, "train-images", narrow),
        "hold 12 images of 1 x 3 x 4, and 12 of 1 x 4 x 4 are needed",
    )
    refused(SMALL, broken("e", IDX, "train-labels", b"P5 28 28"), "is not an IDX file of bytes")
    half = folder(tmp_path / "f", IDX) / "train-images.gz"
    half.write_bytes(half.read_bytes()[:-20])
    refused(SMALL, half.parent, "is not a whole gzip file")
    packed = archive(tmp_path / "binary.tar.gz", BINARY)
    packed.write_bytes(packed.read_bytes()[: packed.stat().st_size // 2])
    refused(CIFAR, packed, "is not a whole archive")
    refused(
        CIFAR,
        broken("g", BINARY, "b1.bin", BINARY["b1.bin"][:-1]),
        "b1.bin has 18,437 bytes, which is no whole number",
    )
    wrong = copy.deepcopy(SMALL) | {"classes": ["0", "1"]}
    refused(wrong, folder(tmp_path / "h", IDX), "there are labels outside of 0 to 1")


def test_a_data_set_that_is_not_configured_says_what_to_write(tmp_path):
    with pytest.raises(
        DatasetError,
        match="Pictures is not there: write the folder, archive or URL of its files under 'data'",
    ):
        splits.prepare(SMALL, None, tmp_path / "train.npz", tmp_path / "test.npz")


def test_files_that_were_exchanged_under_their_names_train_nothing(tmp_path, read):
    """The other split, labels of something else under the old sum, and a file that was cut off."""
    read(SMALL, folder(tmp_path / "x", IDX))
    train, test = read.out / "train.npz", read.out / "test.npz"
    assert whole.check(SMALL, train, test) == sums(train, test)
    with pytest.raises(DatasetError, match="test.npz does not hold the 12 images of Pictures that"):
        whole.check(SMALL, test, train)
    arrays, content = dict(np.load(train)), train.read_bytes()
    np.savez(train, **arrays | {"labels": arrays["labels"] * 0})
    with pytest.raises(DatasetError, match="train.npz does not hold the 12 images of Pictures"):
        whole.check(SMALL, train, test)
    train.write_bytes(content[:-99])
    with pytest.raises(DatasetError, match="train.npz is broken"):
        whole.check(SMALL, train, test)
