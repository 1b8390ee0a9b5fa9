"""A model of images: what scores them, and the size that it takes them in."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from aloof.exceptions import DriftWarning, ImageError, ImageWarning, LabelError
from aloof.imagery import Channels, Collection, Skipped, without_page
from aloof.io import write_file
from aloof.labels import ANOMALY, NORMAL
from aloof.metrics import region_overlap, roc_auc
from aloof.models import Drift, Evaluation, Model, MostAnomalous, Progress, ScoredFile, made_by
from aloof.models.images.drift import ImageProfile, brightness, find_image_drift
from aloof.models.images.expectation import expected_images
from aloof.models.images.labels import ImageLabels, LabelOptions
from aloof.models.images.masks import read_masks
from aloof.models.images.reading import ImageSet, images_in_memory, read_images
from aloof.models.images.views import View, WholeView, check_view, view_from
from aloof.models.results import highest
from aloof.phrases import count
from aloof.suggestion import closest
from aloof.vision.features import LARGEST_AT_ONCE

if TYPE_CHECKING:
    from aloof.estimators import Detector
    from aloof.io.sections import Section

__all__ = ["ImageExplanation", "ImageModel", "ImageScores"]

_AT_ONCE = 16  # images whose heat maps are made together
_MUCH = 3  # times that images are larger than what is seen of them
_DRAWN = 1024  # pixels on the longer side, where several images are in one picture


@dataclass(frozen=True, eq=False)
class ImageScores:
    """What there is to say about some images.

    Attributes
    ----------
    names
        Of the files.
    anomaly_score
        Higher is worse.
    p_value
        How likely a normal image is to look at least as anomalous; None: not calibrated.
    is_anomaly
        By the threshold of the model.
    skipped
        Files that were left out, and why.
    drift
        In which ways the images do not look like those that were learned from.
    """

    names: tuple[str, ...] = field(repr=False)
    anomaly_score: NDArray[np.float64]
    p_value: NDArray[np.float64] | None
    is_anomaly: NDArray[np.bool_]
    skipped: tuple[Skipped, ...]
    drift: tuple[Drift, ...] = ()

    def columns(self) -> dict[str, Any]:
        """Return the columns of a table: ``file``, ``anomaly_score``, ..."""
        table: dict[str, Any] = {
            "file": list(self.names),
            "anomaly_score": self.anomaly_score,
        }
        if self.p_value is not None:
            table["p_value"] = self.p_value
        return table | {"is_anomaly": self.is_anomaly}


@dataclass(frozen=True, eq=False)
class ImageExplanation:
    """Where some images have their anomaly scores from.

    Attributes
    ----------
    heat
        What every pixel contributes to the score, ``(n, height, width)``; adds up to it.
        With a backbone: how strange each place is. For patches, the score of an image is the
        mean of the highest; for whole images, it is what the score loses without the place.
    expected
        The image as it would be if it were normal, ``(n, channels, height, width)``, in
        [0, 1]; see `aloof.models.images.expectation`. None: the model has a backbone, and
        cannot draw.
    difference
        How far every pixel is from that, ``(n, height, width)``: the mean square over the
        channels. With a backbone: the same as the heat.
    score
        The anomaly scores.
    least
        The difference that is drawn brightest is at least this, so that normal images stay
        dark.
    """

    heat: NDArray[np.float64]
    expected: NDArray[np.float64] | None
    difference: NDArray[np.float64]
    score: NDArray[np.float64]
    least: float = 0.0


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ImageModel(Model):
    """A detector for images; `aloof.fit` makes one, `aloof.load` reads one.

    Images are a folder, a zip archive or a file (see `open_images`), an `ImageSet`, or an
    array ``(n, channels, height, width)`` of bytes, or of numbers in [0, 1], in the size of
    the model.

    Attributes
    ----------
    detector
        What scores arrays of pixels. It was calibrated with images that were held out, if
        there were enough.
    training
        What it was made from, as JSON can hold it: ``source`` (None: an array), ``n_images``
        read, ``n_skipped`` files, ``n_anomalies``, ``n_labelled_normal``, ``n_unlabelled``,
        ``n_training`` and ``n_calibration`` images (the latter two without anomalies);
        ``seed``; ``warnings``, a list of words; ``made``, see
        `aloof.models.made_by`.
    profile
        What other images are compared with; see `drift`. None: the model is older.
    view
        What the detector sees of images, with a backbone; see `aloof.models.images.views`.
        None: their pixels.
    """

    profile: ImageProfile | None = None
    view: View | None = None

    section, kind, things, error = "images", "images", "images", ImageError

    def __repr__(self) -> str:
        channels, height, width = self.shape
        kind = "grey" if channels == 1 else "colour"
        detector = type(self.detector).__name__
        return f"ImageModel({detector} of {kind} images, {height} x {width})"

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of the images: channels, height, width."""
        if self.view is not None:
            return self.view.shape
        return cast(tuple[int, int, int], self.detector.shape_)

    @property
    def extent(self) -> str:
        """How much there was to learn from, in words that follow "images and anomalies"."""
        skipped = self.training["n_skipped"]
        rest = f", {count(skipped, 'file')} skipped" if skipped else ""
        return f", {self.size_in_words}{rest}"

    @property
    def understood(self) -> list[str]:
        """What was chosen and why, in words."""
        if self.view is None:
            return []
        name, why = self.view.backbone.facts.name, self.training.get("chosen", "")
        return [f"images with {name}, as {self.view.words} ({why})", *self._shrunk()]

    def _shrunk(self) -> list[str]:
        """Say in words that images are made much smaller, if they are."""
        if self.profile is None or not self.profile.sizes:
            return []
        height, width, _ = self.profile.sizes[0]
        longer, seen = max(height, width), max(self.shape[1:])
        if longer < _MUCH * seen:
            return []
        return [
            f"images of {width:,} x {height:,} pixels as {self.shape[2]:,} x {self.shape[1]:,}:"
            f" a defect of fewer than {2 * longer // seen} pixels is hardly seen. To look at "
            f"all pixels, tile by tile: size={longer} (--size {longer}), which takes about "
            f"{(longer // seen) ** 2} times as long"
        ]

    def read(self, data: Any, *, progress: Progress | None = None) -> ImageSet:
        """Read images in the size and colours of the model.

        Parameters
        ----------
        data
            A folder, a zip archive, a file, an `ImageSet` or an array.
        progress
            Called with how many images were read, and how many there are.
        """
        channels, height, width = self.shape
        if isinstance(data, str | os.PathLike | Collection):
            depth: Channels = 1 if channels == 1 else 3
            return read_images(
                data,
                size=(height, width),
                channels=depth,
                keeps_proportions=self.view is not None,
                progress=progress,
            )
        shape = np.shape(data.pixels if isinstance(data, ImageSet) else data)
        if len(shape) != 4 or shape[1:] != self.shape:
            raise ImageError(
                f"The model takes images of shape (n, {str(self.shape)[1:]}; these have shape "
                f"{shape}. Read them with the model's own read method."
            )
        return data if isinstance(data, ImageSet) else images_in_memory(np.asarray(data))

    def anomaly_score(self, data: Any) -> NDArray[np.float64]:
        """Return how anomalous each image is; higher is worse."""
        pixels = self.read(data).pixels
        if self.view is not None:
            return self.view.scores(self.detector, pixels)
        return self.detector.anomaly_score(pixels)

    def features(self, pixels: NDArray[Any]) -> NDArray[Any]:
        """Return what is learned from of each image: features of the whole, or pixels."""
        return self.view.features(pixels) if isinstance(self.view, WholeView) else pixels

    @property
    def learns_patches(self) -> bool:
        """Whether an image is many rows of the detector."""
        return self.view is not None and not isinstance(self.view, WholeView)

    def codes(self, pixels: NDArray[Any]) -> NDArray[np.float64]:
        """Return a vector for each image, near that of images alike."""
        if self.view is not None:
            return self.view.codes(self.detector, pixels)
        codes: NDArray[np.float64] = self.detector.latent(pixels)[0]
        return codes

    def score(self, data: Any) -> ImageScores:
        """Return what there is to say about each image.

        Warns where the images do not look like those that were learned from; see `drift`.
        """
        scores = self.scored(self.read(data))
        _warn_of(scores.drift)
        return scores

    def scored(self, found: ImageSet, *, decides: bool = True) -> ImageScores:
        """Return what `score` does, without a warning.

        Parameters
        ----------
        found
            The images.
        decides
            Whether the threshold decides, so that it must explain how many are flagged.
        """
        scores = self.anomaly_score(found)
        p, flagged = self.detector.decision_.p_values(scores), self.decide(scores)
        drift = list(self.drift(found))
        drift += self._flagged_drift(len(scores), int(flagged.sum())) if decides else []
        return ImageScores(found.names, scores, p, flagged, found.skipped, tuple(drift))

    def drift(self, data: Any) -> tuple[Drift, ...]:
        """Return in which ways images do not look like those that were learned from.

        The size of the files, whether they are grey, and how bright they are. Fresh images of
        the same source rarely give any. `score` also says where more are flagged than the
        threshold explains.
        """
        return tuple(find_image_drift(self.profile, self.read(data)))

    def score_file(
        self,
        data: Any,
        out: str | os.PathLike[str],
        *,
        keep_all: bool = False,
        top: int | None = None,
        flagged_only: bool = False,
        sort: bool = False,
        force: bool = False,
    ) -> ScoredFile:
        """Write what there is to say about each image into a table.

        Parameters
        ----------
        data
            A folder, a zip archive, a file, an `ImageSet` or an array.
        out
            The file to be; see `aloof.models.table.check_output`.
        keep_all
            Also write what else is known of the files: ``folder``, ``width``, ``height``,
            ``grey`` and ``brightness``, from 0 (black) to 255.
        top
            How many images to flag, whatever their scores: the highest. None: those that the
            threshold says.
        flagged_only
            Write the images that are flagged, and no others.
        sort
            Write the highest scores first.
        force
            Replace a file that is there.
        """
        import pyarrow as pa

        found = self.read(data)
        scores = self.scored(found, decides=top is None)
        columns = scores.columns()
        if keep_all:
            columns |= _known_of(found)
        done = self._written(
            pa.table(columns),
            out,
            top=top,
            flagged_only=flagged_only,
            sort=sort,
            force=force,
            skipped=scores.skipped,
        )
        _warn_of(scores.drift)
        return replace(done, drift=scores.drift)

    def explain(self, data: Any) -> ImageExplanation:
        """Return where in each image its anomaly score comes from.

        Takes about ten times as long as the scores do.
        """
        pixels = self.read(data).pixels
        if self.view is not None:
            heat, scores, least = self.view.heat(self.detector, pixels)
            return ImageExplanation(heat, None, heat, scores, least)
        found = self.detector.explain(pixels)
        expected, difference = expected_images(self.detector, pixels)
        return ImageExplanation(found.contributions.sum(1), expected, difference, found.score)

    def most_anomalous(
        self,
        data: Any,
        top: int = 20,
        *,
        ids: Sequence[str] = (),
        rows: Sequence[int] = (),
        out: str | os.PathLike[str] | None = None,
    ) -> MostAnomalous:
        """Return the images with the highest scores, or those that are asked for.

        Parameters
        ----------
        data
            A folder, a zip archive, a file, an `ImageSet` or an array.
        top
            How many images.
        ids, rows
            Images to tell about in place of the highest: by the path or the name of the file,
            and by number, counted from 1 in the order of the scores.
        out
            PNG file for a picture of what is strange about them: of each the image, as it
            would be if it were normal (without a backbone), and what is strange. Or a folder,
            which ends in a slash or is there: a picture for each, named as the image.
        """
        to_folder = out is not None and (
            os.fspath(out).endswith(("/", os.sep)) or Path(out).is_dir()
        )
        if out is not None and not to_folder and Path(out).suffix.lower() != ".png":
            name = Path(out).with_suffix(".png").name
            raise ImageError(
                f"The picture must be a PNG file. Call it {name}; or, for a folder with a "
                f"picture of each, {Path(out).name}/."
            )
        found = self.read(data)
        asked = np.union1d(_places_of(ids, found), self._numbered(rows, len(found)))
        asked = asked.astype(np.intp)
        scores = self.scored(found)
        _warn_of(scores.drift)
        order = asked if len(asked) else highest(scores.anomaly_score, top, ImageError)
        remark = "To see where they are strange: aloof report MODEL DATA --out report.html"
        if out is not None:
            names = [found.names[place] for place in order] if to_folder else None
            self._draw(found.pixels[order], Path(out), names)
            expected = "" if self.view else "what it would look like if it were normal, "
            remark = (
                f"From left to right in {os.fspath(out)}: the image, {expected}and "
                f"{'what is strange about it' if self.view else 'where the two differ'}."
            )
        verdicts = self.verdicts(scores.anomaly_score[order], scores.is_anomaly[order])
        told: list[dict[str, Any]] = [
            {"file": scores.names[place], **said}
            for place, said in zip(order, verdicts, strict=True)
        ]
        numbers = asked + 1 if len(asked) else range(1, len(told) + 1)
        names = [f"{n:>4}  {row['file']}" for n, row in zip(numbers, told, strict=True)]
        return MostAnomalous(len(found), names, told, remark, scores.skipped)

    def _draw(self, pixels: NDArray[Any], out: Path, names: list[str] | None) -> None:
        """Draw all images into a file, or, with names, each into a file of its own."""
        from aloof.models.images.panels import explained_small, joined, png

        most = _DRAWN if names is None else max(self.shape[1:])
        rows = explained_small(self, pixels, most)
        grow = max(1, 192 // max(self.shape[1:]))
        if names is None:
            write_file(out, png(joined(rows, grow)), ImageError)
            return
        for name, row in zip(names, rows, strict=True):
            path = out / f"{name.replace('/', '-')}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            write_file(path, png(joined([row], grow)), ImageError)

    def evaluate(
        self,
        data: Any,
        *,
        masks: str | os.PathLike[str] | None = None,
        **labels: Unpack[LabelOptions],
    ) -> Evaluation:
        """Return how well scores and decisions agree with labels.

        Parameters
        ----------
        data
            A folder, a zip archive, a file, an `ImageSet` or an array. Images without a label
            have no say.
        masks
            A folder of masks of the anomalies, to compare heat maps with; see `read_masks`.
            Anomalies without a mask then have no say about pixels.
        **labels
            Where labels come from; see `ImageLabels`.
        """
        wanted = ImageLabels(**labels)
        if not wanted.given:
            raise LabelError(
                "Say which images are anomalies: name both folders (--normal good --anomaly "
                "bad), or a table (--labels FILE)."
            )
        found = self.read(data)
        given = self._labels(found, wanted)
        known: dict[int, NDArray[np.bool_]] = {}
        if masks is not None:
            known = read_masks(
                masks, found, given == ANOMALY, otherwise="have no say about pixels"
            )
        done = self._evaluation(given, self.anomaly_score(found))
        if masks is None:
            return done
        from aloof.models.images.panels import reduced

        factor = -(-max(self.shape[1:]) // LARGEST_AT_ONCE)
        at_once = 1 if factor > 1 else _AT_ONCE
        places = np.sort([*known, *np.flatnonzero(given == NORMAL)]).astype(np.int64)
        blank = np.zeros(self.shape[1:], bool)
        marked = np.stack(
            [reduced(known.get(int(p), blank), factor, keeps_peaks=True) for p in places]
        )
        heat = np.concatenate(
            [
                reduced(
                    self.explain(found.pixels[places[i : i + at_once]]).difference,
                    factor,
                    keeps_peaks=True,
                )
                for i in range(0, len(places), at_once)
            ]
        )
        pixels = roc_auc(marked.ravel().astype(np.int64), heat.ravel())
        return replace(done, pixel_auroc=pixels, pro=region_overlap(marked, heat))

    def calibrate(self, data: Any, **labels: Unpack[LabelOptions]) -> ImageModel:
        """Learn which scores normal images have from images that were not trained on.

        Parameters
        ----------
        data
            A folder, a zip archive, a file, an `ImageSet` or an array.
        **labels
            Where labels come from, if there are any; see `ImageLabels`. Images labelled as
            anomalies are left out.

        Returns
        -------
        The model. The rule of its threshold stays; the level is that of these images.
        """
        wanted = ImageLabels(**labels)
        found = self.read(data)
        given = self._labels(found, wanted)
        call = made_by(self.calibrate, found.name, vars(wanted))
        return self._calibrated(given, self.anomaly_score(found), call)

    def report(
        self,
        data: Any,
        out: str | os.PathLike[str],
        *,
        top: int = 20,
        title: str = "Anomaly report",
        force: bool = False,
        **labels: Unpack[LabelOptions],
    ) -> None:
        """Write what the model finds among images into one HTML file.

        The file holds its pictures and loads nothing from elsewhere.

        Parameters
        ----------
        data
            A folder, a zip archive, a file, an `ImageSet` or an array.
        out
            The file to write.
        top
            How many of the most anomalous images to explain.
        title
            The heading.
        force
            Whether to replace an existing file.
        **labels
            Where labels to compare with come from, if there are any; see `ImageLabels`.
        """
        from aloof.models.images.page import write_image_page

        wanted = ImageLabels(**labels)
        write_image_page(self, data, out, wanted, top=top, force=force, title=title)

    def reconstruct(self, data: Any) -> NDArray[np.float64]:
        """Return the mean of the members' reconstructions, with pixels in [0, 1]."""
        if self.view is not None:
            raise ImageError(
                "A model with a backbone knows features of images, and cannot draw them. Fit "
                "with backbone='none' (--backbone none) for reconstructions."
            )
        return self.detector.reconstruct(self.read(data).pixels)

    def describe(self) -> dict[str, Any]:
        """Return what the model is and what it was made from, as JSON can hold it."""
        seen = {} if self.view is None else {"view": self.view.state()}
        return {**super().describe(), "shape": list(self.shape), **seen}

    @property
    def size_in_words(self) -> str:
        """How large the images are, and whether they are grey."""
        channels, height, width = self.shape
        return f"{width} x {height} pixels, {'grey' if channels == 1 else 'in colour'}"

    def _origin(self) -> list[tuple[str, str]]:
        training = self.training
        skipped = training["n_skipped"]
        rest = f", {count(skipped, 'file')} skipped" if skipped else ""
        images = count(training["n_images"], "image")
        return [
            ("Trained on", f"{training['source'] or 'images in memory'}: {images}{rest}"),
            ("Labels", self._label_counts()),
        ]

    def _own_facts(self) -> list[tuple[str, str]]:
        if self.view is not None:
            facts = self.view.backbone.facts
            return [
                ("Images", f"{self.size_in_words}; others are resized, with margins"),
                ("Compared", f"{self.view.words}"),
                *([("Beside it", ", ".join(beside))] if (beside := self.view.beside) else []),
                ("Backbone", f"{facts.name}, SHA-256 {facts.sha256[:8]}..., {facts.licence}"),
            ]
        filters = " - ".join(map(str, self.detector.filters or ()))
        words = f"filters {filters}, {self.detector.latent_dim} latent dimensions"
        return [
            ("Images", f"{self.size_in_words}; others are resized to fit"),
            ("Networks", words),
        ]

    def _state(self) -> dict[str, Any]:
        profile = None if self.profile is None else self.profile.state()
        view = None if self.view is None else self.view.state()
        return {"training": self.training, "profile": profile, "view": view}

    def _tensors(self) -> dict[str, Tensor]:
        return {} if self.view is None else self.view.tensors()

    @classmethod
    def _schema(cls) -> type[Section]:
        from aloof.models.images.manifest import ImageManifest

        return ImageManifest

    @classmethod
    def _read_state(
        cls, state: dict[str, Any], detector: Detector, tensors: dict[str, Tensor]
    ) -> dict[str, Any]:
        seen, view = state.get("view"), None  # older models take pixels
        if seen is not None:
            view = view_from(seen, tensors, str(detector.device_))
            check_view(view, detector)
            tensors = {}
        elif len(detector.shape_) != 3 or detector.shape_[0] not in (1, 3):
            raise ValueError("the detector is for rows, not for images")
        profile = state.get("profile")  # older models have none
        return {
            **super()._read_state(state, detector, tensors),
            "profile": None if profile is None else ImageProfile.from_state(profile),
            "view": view,
        }

    def _labels(self, found: ImageSet, wanted: ImageLabels) -> NDArray[np.int64]:
        labels, remarks = wanted.of(found)
        for words in remarks:
            warnings.warn(words, ImageWarning, stacklevel=3)
        return labels


def _warn_of(drift: Sequence[Drift]) -> None:
    for each in drift:
        warnings.warn(DriftWarning(each.words, each.what), stacklevel=3)


def _known_of(images: ImageSet) -> dict[str, Any]:
    """Return what is known of files, as columns of a table."""
    columns: dict[str, Any] = {"folder": list(images.folders)}
    if images.looks:
        columns["width"] = [look.size[1] for look in images.looks]
        columns["height"] = [look.size[0] for look in images.looks]
        columns["grey"] = [look.grey for look in images.looks]
    return columns | {"brightness": brightness(images.pixels).round(1)}


def _places_of(ids: Sequence[str], images: ImageSet) -> NDArray[np.int64]:
    """Return where the files are that go by these paths or names."""
    places = []
    for id in ids:
        asked = Path(id).as_posix()
        paths = {asked, *(_within(asked, path) for path in images.paths)}
        for names in (images.names, tuple(map(without_page, images.names))):
            found = [place for place, name in enumerate(names) if name in paths]
            if not found:
                found = [p for p, name in enumerate(names) if name.endswith(f"/{asked}")]
            if found:
                break
        if not found:
            raise ImageError(f"There is no image {id!r}{closest(asked, images.names)}.")
        if len(found) > 1:
            shown = ", ".join(images.names[place] for place in found[:3])
            raise ImageError(f"{id!r} can be {shown}: name one of them in full.")
        places += found
    return np.array(places, np.int64)


def _within(name: str, path: Path) -> str:
    """Return a path relative to a folder, or to that of a file, where it leads there."""
    for root in (path.absolute(), path.absolute().parent):
        if Path(name).absolute().is_relative_to(root):
            return Path(name).absolute().relative_to(root).as_posix()
    return name
