/** The models of a site, one for each name, with the machines that offer it. Pure. */
import type { ShownModel } from "#shared/protocol/model.ts";
import { sizeText } from "./quantity.ts";

export interface ModelRow {
  readonly id: string;
  readonly offers: readonly ShownModel[];
}

export function groupModels(models: readonly ShownModel[]): ModelRow[] {
  const groups = [...Map.groupBy(models, ({ id }) => id)].map(([id, offers]) => ({ id, offers }));
  return groups.toSorted((one, other) => (one.id < other.id ? -1 : 1));
}

/** Tells if a model is in memory, how much it takes there, and how far its load is. */
export function memoryText({ loaded, loading, kept, memory_mb: memoryMb }: ShownModel): string {
  if (loading) return `${loading.percent} %, about ${loading.seconds_left} s`;
  if (loaded === null) return "–";
  const size = loaded && memoryMb ? `, ${sizeText(memoryMb)}` : "";
  return `${loaded ? "yes" : "no"}${size}${kept ? ", kept" : ""}`;
}

/** Returns the smallest and the largest of a figure of each, once if they are the same. */
export function rangeText<Each>(
  all: readonly Each[],
  figure: (each: Each) => number,
  text: (value: number) => string,
): string {
  const values = all.map(figure);
  const [least, most] = [text(Math.min(...values)), text(Math.max(...values))];
  return least === most ? least : `${least} to ${most}`;
}

/** A name that clients asked for and did not find. */
interface MissingModel {
  readonly name: string;
  readonly requests: number;
  readonly lastAt: string;
  /** The ids of the keys, the latest first. */
  readonly keys: readonly string[];
}

/** Returns the names of requests, the latest first, that were not found and still are not there. */
export function missingModels(
  requests: readonly { readonly model: string | null; readonly at: string; readonly key: string }[],
  isThere: (name: string) => boolean,
): MissingModel[] {
  return [...Map.groupBy(requests, ({ model }) => model ?? "")].flatMap(([name, asked]) => {
    const [last] = asked;
    if (name === "" || last === undefined || isThere(name)) return [];
    return [{ name, requests: asked.length, lastAt: last.at, keys: [...new Set(asked.map(({ key }) => key))] }];
  });
}
