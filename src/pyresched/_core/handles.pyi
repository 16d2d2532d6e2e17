from typing import final

@final
class Handles:
    @property
    def count(self) -> int: ...
