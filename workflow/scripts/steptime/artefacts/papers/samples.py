"""Figure of sample images of each class of a data set, from the very images that networks are trained on."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from steptime.artefacts.inputs import Inputs
from steptime.render import figures

COLUMNS = ["data_set", "sha256", "class", "place", "image"]
EACH = 10
GAP = 3  # pixels between images
SEED = 2018
INCHES = 6.4


def figure(inputs: Inputs) -> tuple[pd.DataFrame, Figure]:
    """Returns the images shown (COLUMNS; `image` counts from 0 in the split) and the figure, a row for each class."""
    artefact, short = inputs.entry, inputs.catalogue["short"]
    with np.load(inputs.paths("images")[0], allow_pickle=False) as file:
        data = dict(file)
    name, classes = str(data["name"]), [str(text) for text in data["classes"]]
    random = np.random.RandomState(SEED)
    chosen = [
        random.choice(np.flatnonzero(data["labels"] == label), EACH, replace=False).tolist()
        for label in range(len(classes))
    ]
    rows = [
        (name, str(data["sha256"]), classes[label], place, image)
        for label, images in enumerate(chosen)
        for place, image in enumerate(images, 1)
    ]
    mosaic = _mosaic(data["images"], chosen)
    with figures.canvas(height=INCHES) as (drawing, axes):
        axes.imshow(mosaic, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
        step = data["images"].shape[-1] + GAP
        axes.set_yticks([step * row + (step - GAP) / 2 for row in range(len(classes))], classes)
        axes.set_xticks([])
        axes.grid(visible=False)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        figures.headings(axes, artefact["title"], [artefact["caption"]])
        digest = str(data["sha256"])[:12]
        words = f"Images of {name}: {EACH} of each class, drawn at random with a fixed seed."
        notes = [
            f"Images: {data['source']}; sha256 of their arrays {digest}.",
            f"{artefact['sources'][0]} of {short} shows others of the same classes.",
        ]
        figures.caption(drawing, words, notes)
    return pd.DataFrame(rows, columns=COLUMNS), drawing


def _mosaic(images: np.ndarray, chosen: list[list[int]]) -> np.ndarray:
    """Returns one image, (height, width) or (height, width, 3), with all chosen images on white."""
    gaps = [(0, 0)] * 3 + [(0, GAP)] * 2
    padded = np.pad(images[np.array(chosen)], gaps, constant_values=255).transpose(0, 3, 1, 4, 2)
    rows, height, columns, width, channels = padded.shape
    mosaic = padded.reshape(rows * height, columns * width, channels)[:-GAP, :-GAP]
    return mosaic[:, :, 0] if channels == 1 else mosaic
