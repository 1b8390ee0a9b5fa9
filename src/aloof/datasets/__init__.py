"""Public data sets: which there are, where they come from, and reading them.

>>> from aloof.datasets import list_datasets
>>> [entry.name for entry in list_datasets()]
['arrhythmia', 'cardio', 'satellite', 'satimage-2', 'shuttle', 'thyroid']
>>> from aloof.datasets import list_image_datasets
>>> [entry.name for entry in list_image_datasets()]
['cats-vs-dogs', 'cifar10', 'fashion-mnist', 'mnist']

Files are downloaded once into a cache folder, and kept only if their SHA-256 is a known one.
Where the environment variable ``ALOOF_DATA`` names a folder, files are read from there
(``odds/cardio.mat`` and so on) and nothing is downloaded.
"""

from aloof.datasets.files import cache_folder, data_folder, dataset_path
from aloof.datasets.image_sets import (
    PublicImages,
    fetch_images,
    find_image_dataset,
    list_image_datasets,
)
from aloof.datasets.odds import Table, fetch, load_odds
from aloof.datasets.registry import Dataset, find_dataset, list_datasets

__all__ = [
    "Dataset",
    "PublicImages",
    "Table",
    "cache_folder",
    "data_folder",
    "dataset_path",
    "fetch",
    "fetch_images",
    "find_dataset",
    "find_image_dataset",
    "list_datasets",
    "list_image_datasets",
    "load_odds",
]
