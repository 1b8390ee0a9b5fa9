"""``python -m aloof.lite``: the ``aloof-lite`` command."""

from aloof.lite.cli import command

if __name__ == "__main__":
    command()
