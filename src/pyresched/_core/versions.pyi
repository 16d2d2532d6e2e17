from typing import final

@final
class History:
    @property
    def version(self) -> int: ...
    @property
    def pinned(self) -> list[tuple[int, int]]: ...

@final
class Edit:
    def __new__(cls, history: History, owner: object) -> Edit: ...
    @property
    def history(self) -> History: ...
