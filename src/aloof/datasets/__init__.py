"""Public data sets: which there are, where they come from, and reading them.

>>> from aloof.datasets import list_datasets
>>> [entry.name for entry in list_datasets()]
['arrhythmia', 'cardio', 'satellite', 'satimage-2', 'shuttle', 'thyroid']

Files are downloaded once into a cache folder, and kept only if their SHA-256 is a known one.
Where the environment variable ``ALOOF_DATA`` names a folder, files are read from there
(``odds/cardio.mat`` and so on) and nothing is downloaded.
"""

from aloof.datasets.files import cache_folder, dataset_path
from aloof.datasets.odds import Table, fetch, load_odds
from aloof.datasets.registry import Dataset, find_dataset, list_datasets

__all__ = [
    "Dataset",
    "Table",
    "cache_folder",
    "dataset_path",
    "fetch",
    "find_dataset",
    "list_datasets",
    "load_odds",
]
