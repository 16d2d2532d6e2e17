from typing import Self, final

@final
class Crowding:
    def __new__(cls, dynamic: object, count: int) -> Self: ...
