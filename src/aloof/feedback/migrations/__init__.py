"""How the tables of the store came to be, step by step; see `migrating`."""

__all__: list[str] = []
