// Example code. «» marks an empty gap, «text» a gap that replaces text.

export const LANGUAGES = [
  "python", "javascript", "typescript", "tsx", "go", "rust", "java", "c", "cpp", "csharp", "ruby", "php", "lua", "bash",
  "kotlin", "json", "yaml", "toml", "html", "css",
];

export const EXAMPLES = [
  {
    name: "Python: vectors",
    language: "python",
    code: `import math


class Vector:
    """A vector in the plane."""

    def __init__(self, x, y):
        self.x = x
        «»

    def __add__(self, other):
        return Vector(self.x + other.x, «»)

    def __sub__(self, other):
        return Vector(«»)

    def length(self):
        return math.hypot(self.x, «»)
`,
  },
  {
    name: "Python: an account",
    language: "python",
    code: `class Account:
    """Money, and what has become of it."""

    def __init__(self, owner, balance=0):
        self.owner = owner
        self.balance = «»
        self.history = []

    def deposit(self, amount):
        self.balance += amount
        self.history.append(amount)

    def withdraw(self, amount):
        if amount > self.balance:
            raise ValueError("not enough money")
        «»

    def last(self):
        """The last movement."""
        return «»
`,
  },
  {
    name: "JavaScript: arithmetic",
    language: "javascript",
    code: `export function add(a, b) {
  return a + b;
}

export function subtract(a, b) {
  «»
}

export function multiply(a, b) {
  «»
}

export function divide(a, b) {
  if (b === 0) {
    throw new Error(«»);
  }
  return «»;
}
`,
  },
  {
    name: "Go: shapes",
    language: "go",
    code: `package shapes

import "math"

// Circle is given by its radius.
type Circle struct {
	Radius float64
}

// Rectangle is given by its sides.
type Rectangle struct {
	Width, Height float64
}

// Area of a circle.
func (c Circle) Area() float64 {
	return math.Pi * c.Radius * «»
}

// Area of a rectangle.
func (r Rectangle) Area() float64 {
	«»
}

// Perimeter of a rectangle.
func (r Rectangle) Perimeter() float64 {
	«»
}
`,
  },
  {
    name: "JSON: a package",
    language: "json",
    code: `{
  "name": "lacuna-playground",
  "version": "0.1.0",
  "private": true,
  "scripts": {
    "build": "tsc --build",
    "test": «»,
    "lint": «»
  }
}
`,
  },
];

// Returns the code without its marks, and the offsets of its gaps.
export function parse(marked) {
  const gaps = [];
  let text = "";
  for (const piece of marked.split(/(«[^»]*»)/)) {
    const isGap = piece.startsWith("«");
    const bare = isGap ? piece.slice(1, -1) : piece;
    if (isGap) gaps.push({ start: text.length, end: text.length + bare.length });
    text += bare;
  }
  return { text, gaps };
}
