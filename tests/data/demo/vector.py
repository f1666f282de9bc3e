class Vector:
    def __init__(self, x, y):
        self.x = x
        <<fill>>

    def __add__(self, other):
        return Vector(self.x + other.x, <<fill>>)

    def __sub__(self, other):
        return Vector(self.x - other.x, <<fill>>)

    def __neg__(self):
        return Vector(<<fill>>)
