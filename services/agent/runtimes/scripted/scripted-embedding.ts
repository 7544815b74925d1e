import { createHash } from "node:crypto";

export const scriptedDimensions = 64;

/** Returns a vector of length one. It is the same for the same text, and points elsewhere for any other. */
export function scriptedVector(text: string, dimensions: number = scriptedDimensions): number[] {
  const bytes = createHash("shake256", { outputLength: dimensions * 2 })
    .update(text)
    .digest();
  const components = Array.from({ length: dimensions }, (_, at) => bytes.readInt16LE(at * 2) + 0.5);
  const length = Math.hypot(...components);
  return components.map((component) => component / length);
}
