"""The steps, in the order of their numbers. A step that was released is never changed."""

__all__: list[str] = []
