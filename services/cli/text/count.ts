import { z } from "zod";

const sizes = new Map([
  ["M", 1_000_000],
  ["k", 1_000],
  ["", 1],
]);

/** Formats a whole number exactly, with a suffix for large ones: `60`, `100k`, `2M`. */
export function countText(count: number): string {
  for (const [suffix, size] of sizes) {
    if (count >= size && count % size === 0) return `${count / size}${suffix}`;
  }
  return String(count);
}

/** Returns a schema that reads the output of `countText`, and plain digits, within these bounds. */
export function countWithin(bounds: {
  readonly minValue: number | null;
  readonly maxValue: number | null;
}): z.ZodType<number, string> {
  const { minValue, maxValue } = bounds;
  const [min, max] = [minValue ?? 0, maxValue ?? Number.MAX_SAFE_INTEGER];
  const message = `must be a whole number from ${countText(min)} to ${countText(max)}, such as 60, 100k or 2M`;
  return z
    .string()
    .regex(/^\d{1,15}[kM]?$/, message)
    .transform(toCount)
    .refine((count) => count >= min && count <= max, message);
}

export function toCount(text: string): number {
  return Number.parseInt(text, 10) * (sizes.get(text.replace(/^\d+/, "")) ?? Number.NaN);
}
