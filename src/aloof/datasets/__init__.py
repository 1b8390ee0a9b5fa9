"""Public data sets: which there are, where they come from, and reading them.

>>> from aloof.datasets import PublicImages, list_datasets
>>> [entry.name for entry in list_datasets()][:4]
['arrhythmia', 'cardio', 'cats-vs-dogs', 'cifar10']
>>> [entry.title for entry in list_datasets(PublicImages)]
['CatsVsDogs', 'CIFAR-10', 'Fashion-MNIST', 'MNIST']

Files are downloaded once into a cache folder, and kept only if their SHA-256 is a known one.
Where the environment variable ``ALOOF_DATA`` names a folder, files are read from there
(``odds/cardio.mat`` and so on) and nothing is downloaded. A data set of your own is a record
that `register` makes known. `find_duplicates` says which images a set holds more than once.
"""

from aloof.datasets.duplicates import Duplicates, Pair, find_duplicates
from aloof.datasets.files import (
    DataFile,
    LocalFile,
    cache_folder,
    data_folder,
    no_downloads,
)
from aloof.datasets.image_sets import ImageDataset, PublicImages
from aloof.datasets.keel import ClassTable, KeelTables
from aloof.datasets.odds import PublicTable, Table
from aloof.datasets.registry import (
    Dataset,
    find_dataset,
    list_datasets,
    load_dataset,
    register,
)

__all__ = [
    "ClassTable",
    "DataFile",
    "Dataset",
    "Duplicates",
    "ImageDataset",
    "KeelTables",
    "LocalFile",
    "Pair",
    "PublicImages",
    "PublicTable",
    "Table",
    "cache_folder",
    "data_folder",
    "find_dataset",
    "find_duplicates",
    "list_datasets",
    "load_dataset",
    "no_downloads",
    "register",
]
