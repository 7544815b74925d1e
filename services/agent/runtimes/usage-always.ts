import type { EmitEvents } from "./runtime.ts";

/** Adds an estimated usage to an answer whose runtime does not report it. */
export async function usageAlways(
  { estimatedTokens }: { readonly estimatedTokens: number },
  run: (emit: EmitEvents) => Promise<void>,
  emit: EmitEvents,
): Promise<void> {
  let pieces = 0;
  let isReported = false;
  await run((events) => {
    for (const { kind } of events) {
      if (kind === "text") pieces += 1;
      if (kind === "usage") isReported = true;
    }
    return emit(events);
  });
  if (!isReported) await emit([{ kind: "usage", promptTokens: estimatedTokens, completionTokens: pieces }]);
}
