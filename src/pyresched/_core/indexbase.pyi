from typing_extensions import disjoint_base

@disjoint_base
class Index:
    @property
    def version(self) -> int: ...
    @property
    def pinned(self) -> list[int]: ...

@disjoint_base
class IndexReader: ...
