const units = ["kB", "MB", "GB", "TB"] as const;

/** Formats a number of bytes in decimal units: `815 MB`, `4.7 GB`. */
export function byteSize(bytes: number): string {
  let [count, unit]: [number, string] = [bytes, "B"];
  for (const larger of units) {
    if (Math.round(count) < 1_000) break;
    [count, unit] = [count / 1_000, larger];
  }
  const digits = unit === "B" || count >= 9.95 ? 0 : 1;
  return `${count.toFixed(digits)} ${unit}`;
}
