import { Fault } from "#shared/fault/fault.ts";
import { loadsPerMinuteDefault } from "#shared/admin/key-terms.ts";
import { type Book, inSentence } from "#shared/records/book.ts";
import { oneRequest, type Limits } from "./limits.ts";

/** The load that a request would cause: other models make room for its own. */
export interface CausedLoad {
  readonly model: string;
  /** True if the agent of the machine decides what is loaded there. */
  readonly isPlaced: boolean;
}

/** The longest wait that a refusal tells a client. */
const retryAfterSecondsMax = 60;

/**
 * Throws the fault of a request that may not cause a load now. Loads are counted like requests, under a name of their own.
 * Where runtimes load by themselves, only limits that were set count.
 */
export async function assertMayLoad(
  { key, books }: { readonly key: { readonly id: string }; readonly books: readonly Book[] },
  { model, isPlaced }: CausedLoad,
  limits: Limits,
): Promise<void> {
  const set = books.flatMap((book) => countOfLoads(book, book.limits.loadsPerMinute));
  if (set.length === 0 && !isPlaced) return;
  const none = set.find((book) => book.limits.requestsPerMinute === 0);
  if (none !== undefined) {
    throw new Fault("loads_not_allowed", {
      message: `The model '${model}' is in no machine's memory, and ${inSentence(none.noun)} may not have models loaded (--no-loads). Ask for one that is loaded.`,
      param: "model",
    });
  }
  const counts = set.length > 0 ? set : countOfLoads({ id: key.id, noun: "This key" }, loadsPerMinuteDefault);
  const admission = await limits.admit({ books: counts, ...oneRequest });
  if (admission.outcome === "admitted") return;
  const waitSeconds = Math.max(1, Math.ceil(admission.waitMs / 1_000));
  const share = admission.limitStatus.requests?.limit;
  throw new Fault("rate_limit_loads", {
    message: `${admission.book.noun} may have ${share === 1 ? "1 model" : `${share} models`} a minute loaded in place of others, and has. Try again in ${waitSeconds}s, or ask for a model that is loaded.`,
    retryAfterSeconds: Math.min(waitSeconds, retryAfterSecondsMax),
    param: "model",
  });
}

/** Returns the book in which loads are counted as requests; nothing where they have no limit. */
function countOfLoads({ id, noun }: Omit<Book, "limits">, perMinute: number | undefined): readonly Book[] {
  return perMinute === undefined ? [] : [{ id: `${id}.loads`, limits: { requestsPerMinute: perMinute }, noun }];
}
