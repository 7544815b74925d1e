import type { PromptCounter } from "../requests/count-prompts.ts";
import type { RequestWork } from "../requests/request-work.ts";
import type { CountMaker, InferenceDependencies } from "../requests/endpoint.ts";
import type { ReadRequest } from "../requests/read-request.ts";
import type { JobPlacements } from "../routing/job-placements.ts";
import type { ChatForm } from "./read-chat.ts";

declare module "../requests/endpoint.ts" {
  interface InferenceDependencies {
    readonly counter: Pick<PromptCounter, "count">;
    readonly placements: Pick<JobPlacements, "memory">;
  }
}

/** Response header of a number of tokens that no machine counted. */
const estimateHeader = "x-trunkline-estimate";

/**
 * Returns the maker of the tokens of a chat. A machine that would run the chat counts them. Where none does, they are
 * estimated from above, and a header of the answer says so.
 */
export function countOfChat(asked: ReadRequest<ChatForm>, answerOf: (tokens: number) => object): CountMaker {
  return async ({ request, reply, leaving }, dependencies) => {
    // Images are not fetched for a count, and no machine gets a body with their URLs.
    const counted =
      asked.remoteImages === undefined ? await dependencies.counter.count(request, leaving.signal) : undefined;
    if (counted === undefined) reply.header(estimateHeader, "true");
    const tokens = counted ?? estimated(asked, request.work, dependencies);
    return answerOf(Math.min(tokens, asked.ceiling.promptTokens));
  };
}

/** Returns the tokens of the longest earlier turn that a machine answered, with an upper estimate of the rest. */
function estimated(
  { form, promptTokens }: ReadRequest<ChatForm>,
  { needs: { prompt }, targets: [target] }: RequestWork,
  { placements }: InferenceDependencies,
): number {
  const { tokens, behind } = form.upper ?? { tokens: promptTokens, behind: [] };
  const counted = prompt && target && placements.memory.counts.longest(prompt, target.modelId);
  return counted === undefined ? tokens : counted.promptTokens + (behind[counted.at] ?? 0);
}
