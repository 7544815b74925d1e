import { Fault } from "#shared/fault/fault.ts";
import { abortAfter, type Clock } from "#shared/process/clock.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import type { Chosen } from "../routing/choose-machine.ts";
import type { JobPlacements } from "../routing/job-placements.ts";
import { recordsOf } from "../jobs/job-events.ts";
import type { OpenJobs } from "../jobs/open-jobs.ts";
import { wantedBy } from "./choose.ts";
import type { ModelRequest } from "./request.ts";

interface CounterOptions {
  readonly jobs: Pick<OpenJobs, "run">;
  readonly placements: Pick<JobPlacements, "rankNow">;
  readonly timing: Timing;
  readonly clock: Clock;
}

/** A chat whose prompt is to be counted. */
export type CountedChat = Pick<ModelRequest, "work" | "headOf">;

/** Limits the machines that are asked for the count of one prompt. */
const askedMax = 2;

/** Counts the tokens of prompts at the machines that would answer them. A count takes no slot of a machine. */
export class PromptCounter {
  readonly #options: CounterOptions;

  constructor(options: CounterOptions) {
    this.#options = options;
  }

  /** Returns the exact number of tokens. Undefined if no machine that would answer the chat counts it in time. */
  async count(chat: CountedChat, signal: AbortSignal): Promise<number | undefined> {
    const { placements } = this.#options;
    const ranked = wantedBy({ targets: chat.work.targets, needs: chat.work.needs, kind: "count" }, signal).map(
      (target) => placements.rankNow(target) ?? [],
    );
    const first = ranked.find(({ length }) => length > 0) ?? [];
    for (const chosen of first.filter(({ model }) => model.counts === true).slice(0, askedMax)) {
      const counted = await this.#ask(chat, chosen, signal);
      if (counted !== undefined) return counted;
    }
    return undefined;
  }

  async #ask(chat: CountedChat, chosen: Chosen, signal: AbortSignal): Promise<number | undefined> {
    const { jobs, timing, clock } = this.#options;
    const { keyId, traceparent } = chat.headOf({ isWhole: true });
    const { countWaitMs, acceptWaitMs } = timing;
    const message = "The GPU machine did not count the tokens in time (countWaitMs).";
    using late = abortAfter(clock, countWaitMs, () => new Fault("upstream_timeout", { message }));
    const outcome = await jobs.run({
      target: chosen,
      head: { id: newToken(), kind: "count", model: chosen.model.id, keyId, remainingMs: countWaitMs, traceparent },
      body: chat.work.body,
      sha256: chat.work.sha256,
      acceptWithinMs: acceptWaitMs * 2,
      owner: recordsOf(() => undefined),
      signal: AbortSignal.any([signal, late.signal]),
    });
    signal.throwIfAborted();
    return outcome.kind === "end" ? outcome.end.usage?.promptTokens : undefined;
  }
}
