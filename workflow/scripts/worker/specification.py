"""What a worker reads off a specification (see `steptime.networks`), which it gets ready made."""

BATCH_NORM_EPSILON = 1e-5


def count_labels(spec):
    """Number of labels of one sample: one, or one for each step of a sequence."""
    count = 1
    for extent in spec["nodes"][-1]["shape"][:-1]:
        count *= extent
    return count


def count_classes(spec):
    """Number of classes of the softmax."""
    return spec["nodes"][-1]["shape"][-1]
