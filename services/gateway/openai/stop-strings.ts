import { z } from "zod";
import { stopsMax, stopText } from "#shared/protocol/chat-body.ts";

/** The stop strings as OpenAI's clients write them: one string or several. */
export const outerStop = z.union([stopText, z.array(stopText).min(1).max(stopsMax)]).nullish();

export function stopStrings(stop: z.infer<typeof outerStop>): { readonly stop?: string[] } {
  if (stop === null || stop === undefined) return {};
  return { stop: typeof stop === "string" ? [stop] : stop };
}
