const billion = 1_000_000_000;
const million = 1_000_000;

/** Returns a number of parameters as Ollama writes it: `8B`, `3.2B`, `137M`. Undefined for none. */
export function parameterText(count: number | null | undefined): string | undefined {
  if (!count) return undefined;
  if (count >= billion) return `${shortly(count / billion, 1)}B`;
  if (count >= million) return `${shortly(count / million, 2)}M`;
  return count >= 1_000 ? `${Math.round(count / 1_000)}K` : String(count);
}

function shortly(number: number, digits: number): string {
  return Number.isInteger(number) ? String(number) : number.toFixed(digits);
}

/** Returns the usual name of a quantisation that llama.cpp describes: `Q4_K_M` for `Q4_K - Medium`. */
export function quantizationName(description: string | null | undefined): string | undefined {
  const [, name, size] = /^(?:\(guessed\) )?(?:all )?([A-Z]\w+)(?: - ([SML])[a-z])?/.exec(description ?? "") ?? [];
  return name && size ? `${name}_${size}` : name;
}
