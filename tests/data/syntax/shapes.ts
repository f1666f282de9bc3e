// Shapes and their areas.
export interface Shape {
  readonly kind: "circle" | "square";
  size: number;
  label?: string;
}

export type Named<T extends Shape> = T & { name: string };

export function area(shape: Shape): number {
  switch (shape.kind) {
    case "circle":
      return Math.PI * shape.size ** 2;
    case "square":
      return shape.size * shape.size;
    default:
      throw new Error(`unknown shape: ${JSON.stringify(shape)}`);
  }
}

export class Canvas<T extends Shape = Shape> {
  private shapes: T[] = [];

  constructor(public readonly width: number, private height = 10) {}

  add(shape: T, ...more: T[]): this {
    this.shapes.push(shape, ...more);
    return this;
  }

  get largest(): T | undefined {
    return this.shapes.reduce<T | undefined>(
      (best, shape) => (best === undefined || area(shape) > area(best) ? shape : best),
      undefined,
    );
  }
}

enum Level {
  Low = 1,
  High = Low << 2,
}

export const levels: Record<string, Level> = { low: Level.Low, high: Level.High };
