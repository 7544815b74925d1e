/** Requests in words, for lists. Pure. */
import type { RunningStage } from "./running-request.ts";
import type { ShownRequest } from "./shown-request.ts";

export const runningWords: Readonly<Record<RunningStage, string>> = {
  waiting: "waiting",
  loading: "loading the model",
  reading: "reading the prompt",
  answering: "answering",
};

type Marked = Pick<ShownRequest["tried"][number], "machine" | "from_tokens">;

/** Returns what was not plain about a request: another machine worked on it, or its key's limit ended the answer. */
export function markersOf(
  tried: readonly Marked[],
  { code, limit }: Partial<Pick<ShownRequest, "code" | "limit">> = {},
): readonly string[] {
  const wentOn = tried.some(({ from_tokens: from }) => from !== null);
  const isSecond = new Set(tried.map(({ machine }) => machine)).size > 1;
  const atLimit = code === "ok" && limit !== null && limit !== undefined;
  return [
    ...(wentOn ? ["went on elsewhere"] : isSecond ? ["second machine"] : []),
    ...(atLimit ? ["ended at a limit"] : []),
  ];
}
