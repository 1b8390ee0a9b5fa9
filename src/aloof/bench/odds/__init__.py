"""The ODDS data sets: tables with few anomalies, many systems, the paper's figures."""

from aloof.bench.odds.specification import OddsSpecification, System, Variant
from aloof.bench.odds.study import Case, OddsStudy, make_odds

__all__ = ["Case", "OddsSpecification", "OddsStudy", "System", "Variant", "make_odds"]
