"""
Defects on drawn surfaces, and where a model sees them
======================================================

Six surfaces, each with a model of 40 good images and nine labelled scratches and spots. Every
row of the picture has a good image and its heat map, then two defects with mask and heat map.
Most of them are of kinds that nobody labelled. In a row, the same brightness means the same.

Run it with ``python examples/plot_defects.py``; it writes ``defects.png``. It needs the extra
``vision``, and takes a few minutes.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from PIL import Image

import aloof
from aloof.bench.vision.defects import damage
from aloof.bench.vision.problems import make_problem
from aloof.bench.vision.surfaces import draw
from aloof.models.images.panels import heat_colours, joined, shown

DEFECTS = {
    "weave": (("missing", "medium"), ("texture", "small")),
    "wood": (("colour", "medium"), ("scratch", "small")),
    "board": (("misplaced", "medium"), ("missing", "small")),
    "brushed": (("spot", "small"), ("texture", "medium")),
    "tiles": (("misplaced", "medium"), ("colour", "medium")),
    "nuts": (("missing", "medium"), ("scratch", "medium")),
}
SIDE, SHRUNK = 256, 2 / 5


def row(surface: str) -> list[np.ndarray]:
    """Fit a model of one surface, and return its panels."""
    problem = make_problem(surface, 0, normal=40, labelled=9, test=2, side=SIDE, root=None)
    model = aloof.fit(
        normal=problem.normal,
        anomaly=problem.labelled,
        backbone="efficientnet-lite0",
        patches=True,
        seed=0,
    )
    good, *others = draw(surface, 77, 1 + len(DEFECTS[surface]), SIDE)
    images, masks = [good], [None]
    for place, (image, (kind, size)) in enumerate(zip(others, DEFECTS[surface], strict=True)):
        bad, mask = damage(image, kind, size, [9, place, len(surface)])
        images.append(bad)
        masks.append(mask)
    why = model.explain(np.stack(images))
    brightest = max(2 * why.least, why.difference[0].max())
    panels = []
    for image, mask, heat in zip(images, masks, why.difference, strict=True):
        panels.append(shown(image))
        if mask is not None:
            panels.append(shown(mask[None].astype(np.float64)))
        panels.append(heat_colours(image, heat, brightest))
    return panels


def main() -> None:
    parser = argparse.ArgumentParser(description="Draw defects and heat maps.")
    parser.add_argument("--out", type=Path, default=Path("defects.png"))
    options = parser.parse_args()
    rows = []
    for surface in DEFECTS:
        rows.append(row(surface))
        print(surface, flush=True)
    sheet = joined(rows, 1)
    size = (round(sheet.shape[1] * SHRUNK), round(sheet.shape[0] * SHRUNK))
    small = Image.fromarray(sheet).resize(size, Image.Resampling.LANCZOS)
    small.quantize(256).save(options.out)


if __name__ == "__main__":
    main()
