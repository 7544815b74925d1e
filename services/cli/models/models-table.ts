import type { Capabilities } from "#shared/model/model.ts";
import type { ShownModel } from "#shared/model/shown-model.ts";
import { alignedTable } from "../text/aligned-table.ts";
import { byteSize } from "../text/byte-size.ts";
import { cutText } from "../text/cut-text.ts";
import { displayWidth } from "../text/display-width.ts";

const headings = ["id", "machine", "runtime", "capabilities", "window", "size", "MLX", "loaded"] as const;
const right = ["window", "size"] as const;
/** Minimum width of a cut id, however narrow the terminal is. */
const idWidthMin = 20;
const bytesPerMb = 1_000_000;

const words: readonly (readonly [keyof Capabilities, string])[] = [
  ["completion", "chat"],
  ["vision", "vision"],
  ["embedding", "embed"],
  ["tools", "tools"],
  ["thinking", "think"],
];
const grouped = new Intl.NumberFormat("en-US");

/** Formats the models as a table. Cuts ids when the table is wider than `widthMax`; without it, cuts nothing. */
export function modelsTable(
  models: readonly ShownModel[],
  { widthMax }: { readonly widthMax?: number | undefined } = {},
): string {
  const whole = tableOf(models);
  const tooWide = widest(whole.split("\n")) - (widthMax ?? Infinity);
  if (tooWide <= 0) return whole;
  const idWidthMax = Math.max(idWidthMin, widest(models.map(({ id }) => id)) - tooWide);
  return tableOf(models.map((model) => ({ ...model, id: cutText(model.id, idWidthMax) })));
}

function tableOf(models: readonly ShownModel[]): string {
  return alignedTable(
    headings,
    models.map((model) => [
      model.id,
      model.machine,
      model.runtime ?? "-",
      capabilityWords(model.capabilities),
      grouped.format(model.context_window),
      model.size_mb === 0 ? "-" : byteSize(model.size_mb * bytesPerMb),
      yesOrNo(model.apple_mlx),
      yesOrNo(model.loaded),
    ]),
    { right },
  );
}

function capabilityWords(capabilities: Capabilities): string {
  const able = words.flatMap(([capability, word]) => (capabilities[capability] ? [word] : []));
  return able.join(", ") || "-";
}

function yesOrNo(answer: boolean | null): string {
  if (answer === null) return "-";
  return answer ? "yes" : "no";
}

function widest(texts: readonly string[]): number {
  return Math.max(0, ...texts.map(displayWidth));
}
