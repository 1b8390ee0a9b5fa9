"""Detectors in a graph: what is done to rows first, the members, the committee's views."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from aloof.calibration import Evidence
from aloof.calibration.evidence import FARTHEST, LARGEST
from aloof.estimators import Committee, Detector
from aloof.estimators._scaling import REACH, RankStandardizer, Scaling, Standardizer
from aloof.estimators.committee import _ERRORS, _NEIGHBOURS, _TREES
from aloof.export.functions import Knots, normal_quantile
from aloof.export.graph import DOUBLE, FLOAT, ML, Value
from aloof.export.members import Members, Seen
from aloof.shallow import NOISE, Forest, Neighbours

__all__ = ["changes_nothing", "score"]

# Rows that are no further away than this have scores in float32.
_NEAR = 1e4


def score(detector: Detector, rows: Value, *, farthest: float = math.inf) -> Value:
    """Return the anomaly scores of rows ``(rows, *shape)``.

    Parameters
    ----------
    detector
        A fitted one.
    rows
        As it takes them: float32 or double, pixels in [0, 1].
    farthest
        What no number in them is beyond.
    """
    if isinstance(detector, Committee):
        total = _committee(detector, rows, farthest)
        return total.to(FLOAT).to(DOUBLE)
    with rows.graph.part("score"):
        return _see(detector, rows, farthest).score


def _see(detector: Detector, rows: Value, farthest: float, *, errors: bool = False) -> Seen:
    members = Members(
        detector._ensemble,
        detector._fitted_objective,
        detector._aggregate_prior,
        detector._direction_penalty,
    )
    bounded = farthest <= _NEAR if changes_nothing(detector.scaling_) else False
    if isinstance(detector.scaling_, RankStandardizer):
        bounded = True
    scaled = _scaled(detector.scaling_, rows)
    return members.see(scaled, errors=errors, bounded=bounded)


def changes_nothing(scaling: Scaling) -> bool:
    """Whether networks take rows as they are."""
    return (
        isinstance(scaling, Standardizer)
        and not scaling.mean.any()
        and bool((scaling.scale == 1).all())
    )


def _scaled(scaling: Scaling, rows: Value) -> Value:
    """Return rows as networks take them; double, unless nothing is done to them."""
    g = rows.graph
    if isinstance(scaling, RankStandardizer):
        knots = Knots(g, scaling.knots)
        steps, wide = np.linspace(0, 1, len(scaling.knots)), rows.to(DOUBLE)
        up, down = knots.interpolate(wide, steps), knots.interpolate_first(wide, steps)
        normal = normal_quantile((up + down) * 0.5).clip(-REACH, REACH)
        return _scaled(scaling.standard, normal)
    if changes_nothing(scaling):
        return rows
    moved = rows.to(DOUBLE) - g.constant(scaling.mean)
    return (moved / g.constant(scaling.scale)).clip(-scaling.limit, scaling.limit)


def _committee(detector: Committee, rows: Value, farthest: float) -> Value:
    """Return the mean evidence of the views, and what trees add to it."""
    g = rows.graph
    seen: dict[str, Seen] = {}
    for name, view in detector._views():
        with g.part(f"{name} view"):
            errors = bool(detector._forests) and name in _ERRORS
            seen[name] = _see(view, rows, farthest, errors=errors)
    scores = {name: found.score for name, found in seen.items()}
    scaled = _scaled(detector.scaling_, rows).to(DOUBLE)
    if detector._neighbours is not None:
        with g.part(_NEIGHBOURS):
            scores[_NEIGHBOURS] = _distance(detector._neighbours, scaled)
    shares: dict[str, Value] = {}
    for name, forest in detector._forests.items():
        of, known = _TREES[name]
        wrong = seen[of].errors
        assert wrong is not None
        with g.part(name):
            columns = [scaled.to(FLOAT), wrong]
            columns += [scores[n].to(FLOAT).expand(1) for n in known]
            shares[name] = _share(forest, g.concat(columns, 1))
    with g.part("evidence"):
        total = _mean_evidence(detector._evidence, scores)
        if shares:
            added = _mean_evidence(detector._evidence, shares)
            total = total + added * detector.tree_weight_
    return total


def _mean_evidence(evidence: Mapping[str, Evidence], scores: Mapping[str, Value]) -> Value:
    found = [_evidence(evidence[name], value) for name, value in scores.items()]
    total = found[0]
    for more in found[1:]:
        total = total + more
    return total / float(len(found))


def _evidence(evidence: Evidence, scores: Value) -> Value:
    g = scores.graph
    low, high = float(evidence.scores[0]), float(evidence.scores[-1])
    x = scores.clip(-FARTHEST, FARTHEST)
    found = Knots(g, evidence.scores).interpolate(x, evidence.evidence)
    beyond = (x - high).at_least(0.0) / evidence.scale
    found = found + beyond.do("Min", g.number(LARGEST))
    return found * ((x - low).do("Min", g.number(0.0)) / max(evidence.scale, high - low)).do(
        "Exp"
    )


def _distance(neighbours: Neighbours, rows: Value) -> Value:
    """Return the distance to the k-th nearest row."""
    g = rows.graph
    known = neighbours.rows
    norms = g.constant((known**2).sum(1))
    sizes = (rows * rows).sum(1)
    squared = sizes.expand(1) - (rows @ g.constant(known.T)) * 2.0 + norms
    k = min(neighbours.k, len(known))
    nearest = g.smallest(squared, k).slice(k - 1, k, 1).squeeze(1)
    found = g.where(nearest <= sizes * NOISE, 0.0, nearest).do("Sqrt")
    return found.to(FLOAT).to(DOUBLE)


def _share(forest: Forest, inputs: Value) -> Value:
    """Return the mean over trees of the share of anomalies where rows end up."""
    from onnx import TensorProto, helper

    nodes = np.arange(len(forest.feature))
    leaf = forest.left == nodes
    # A root that is a leaf becomes a split with the same leaf on both sides.
    alone = np.zeros(len(nodes), bool)
    alone[forest.roots[leaf[forest.roots]]] = True
    splits = np.flatnonzero(~leaf | alone)
    number = np.full(len(nodes), -1)
    number[splits] = np.arange(len(splits))
    leaves = np.flatnonzero(leaf)
    place = np.full(len(nodes), -1)
    place[leaves] = np.arange(len(leaves))

    def goes_to(children: np.ndarray[tuple[int], np.dtype[np.int32]]) -> tuple[object, object]:
        there = children[splits]
        ends = leaf[there]
        return np.where(ends, place[there], number[there]).tolist(), ends.astype(int).tolist()

    (left, left_ends), (right, right_ends) = goes_to(forest.left), goes_to(forest.right)

    def tensor(name: str, kind: int, values: list[float]) -> object:
        return helper.make_tensor(name, kind, [len(values)], values)

    found = inputs.to(DOUBLE).do(
        "TreeEnsemble",
        domain=ML,
        n_targets=1,
        aggregate_function=0,  # the mean
        post_transform=0,
        tree_roots=number[forest.roots].tolist(),
        nodes_modes=tensor("modes", TensorProto.UINT8, [0] * len(splits)),  # <= goes left
        nodes_featureids=forest.feature[splits].tolist(),
        nodes_splits=tensor("splits", TensorProto.DOUBLE, forest.threshold[splits].tolist()),
        nodes_truenodeids=left,
        nodes_trueleafs=left_ends,
        nodes_falsenodeids=right,
        nodes_falseleafs=right_ends,
        leaf_targetids=[0] * len(leaves),
        leaf_weights=tensor("shares", TensorProto.DOUBLE, forest.value[leaves].tolist()),
    )
    return found.squeeze(1)
