/** One field a line, its value in a column of its own. */
export function fieldLines(fields: readonly (readonly [name: string, value: string])[]): string {
  const width = Math.max(...fields.map(([name]) => name.length));
  return fields.map(([name, value]) => `${name.padEnd(width)}  ${value}\n`).join("");
}
