// Example code. «» marks an empty gap, «text» a gap that replaces text.

export const LANGUAGES = [
  "python", "javascript", "typescript", "tsx", "go", "rust", "java", "c", "cpp", "csharp", "ruby", "php", "lua", "bash",
  "kotlin", "json", "yaml", "toml", "html", "css",
];

export const EXAMPLES = [
  {
    name: "Python: vectors",
    language: "python",
    code: `class Vector:
    def __init__(self, x, y):
        self.x = x
        self.y = y

    def __add__(self, other):
        return Vector(self.x + other.x, self.y + other.y)

    def __sub__(self, other):
        return Vector(«»)

    def __mul__(self, factor):
        return Vector(«»)

    def __neg__(self):
        return Vector(«»)
`,
  },
  {
    name: "Python: an account",
    language: "python",
    code: `class Account:
    """Money, and what has become of it."""

    def __init__(self, owner, balance=0):
        self.owner = owner
        self.balance = balance
        self.history = []

    def deposit(self, amount):
        self.balance += amount
        self.history.append(("deposit", amount))

    def withdraw(self, amount):
        if «»:
            raise ValueError("not enough money")
        self.balance «»
        self.history.append((«»))

    def last(self):
        """The last movement."""
        return self.history[«»]
`,
  },
  {
    name: "JavaScript: arithmetic",
    language: "javascript",
    code: `export function add(a, b) {
  return a + b;
}

export function difference(a, b) {
  return «»;
}

export function multiply(a, b) {
  return «»;
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
    name: "Go: a slice of numbers",
    language: "go",
    code: `package sums

// Sum returns the sum of all values.
func Sum(values []int) int {
	total := 0
	for _, value := range values {
		total += value
	}
	return total
}

// Max returns the largest value.
func Max(values []int) int {
	largest := values[0]
	for _, value := range values[1:] {
		if «» {
			largest = value
		}
	}
	return largest
}

// Contains reports whether a value is among the values.
func Contains(values []int, wanted int) bool {
	for _, value := range values {
		if «» {
			return true
		}
	}
	return false
}
`,
  },
  {
    name: "Rust: points",
    language: "rust",
    code: `/// A point in the plane.
#[derive(Clone, Copy)]
struct Point {
    x: f64,
    y: f64,
}

impl Point {
    fn add(self, other: Point) -> Point {
        Point { x: self.x + other.x, y: self.y + other.y }
    }

    fn sub(self, other: Point) -> Point {
        Point { «» }
    }

    fn scale(self, factor: f64) -> Point {
        Point { «» }
    }

    fn length(self) -> f64 {
        (self.x * self.x + «»).sqrt()
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
