class Vector:
    def __init__(self, x, y):
        self.x = x
        self.y = y

    def __add__(self, other):
        return Vector(self.x + other.x, self.y + other.y)

    def __sub__(self, other):
        return Vector(<<fill>>)

    def __mul__(self, factor):
        return Vector(<<fill>>)

    def __neg__(self):
        return Vector(<<fill>>)
