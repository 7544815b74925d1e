import { setTimeout as pass } from "node:timers/promises";
import type { SeededRandom } from "../seeded-random.ts";
import { type Ask, type Asked, askOverHttp, type AskOptions } from "./ask-over-http.ts";
import type { ScriptedChat } from "./scripted-chat.ts";

const afterRefusalMs = 100;
/** Clients that only wait for a fault to be over give up after so many attempts. */
const attemptsMax = 40;

interface Patience {
  readonly random: SeededRandom;
  /** Each connection is dropped after a random time below this. */
  readonly staysMaxMs?: number;
  /** Each connection is dropped on which nothing came for a random time, from this to its double. */
  readonly silentMs?: number;
}

/**
 * Clients that drop their connections, and ask again until their answer is whole or has failed for good. An attempt that
 * finds no gateway, or one that cannot serve now, is made again.
 */
export class ReconnectingClients {
  /** Connections that the clients dropped. */
  dropped = 0;
  /** Connections that broke: with their gateway, or on their way. */
  broken = 0;
  /** Answers that were asked for anew, since their connection was lost before it told an event to go on from. */
  anew = 0;
  /** The codes of the refusals after which a client asked again. */
  readonly refusals: string[] = [];
  /** For each resumed stream, the time from its request to the first event. */
  readonly resumedMs: number[] = [];
  /** Answers that were given again under their `Idempotency-Key`. */
  replayed = 0;
  /** Answers that were made more than once under their `Idempotency-Key`. */
  remade = 0;
  readonly #patience: Patience;

  constructor(patience: Patience) {
    this.#patience = patience;
  }

  /** Asks for a stream that can be resumed, and after each lost connection for the rest of it. */
  readonly resume: Ask = (chat, options) => {
    let textBefore = "";
    let last: string | undefined;
    return this.#untilOver(async () => {
      const resumes = last === undefined ? {} : { "last-event-id": last };
      const headers = { "x-trunkline-resumable": "1", ...resumes };
      const asked = await this.#attempt(chat, { ...options, headers, textBefore });
      if (last !== undefined && asked.lastEventId !== undefined) this.resumedMs.push(asked.firstMs);
      textBefore = asked.received.text;
      last = asked.lastEventId ?? last;
      if (last === undefined && asked.outcome === "broken off") this.anew += 1;
      return asked;
    });
  };

  /** Asks with an `Idempotency-Key` until the answer is whole, and then once more. */
  readonly repeat: Ask = async (chat, options) => {
    const headers = { "idempotency-key": chat.nonce };
    const ids = new Set<string>();
    const attempt = async (): Promise<Asked> => {
      const asked = await this.#attempt(chat, { ...options, headers });
      if (asked.answerId !== undefined) ids.add(asked.answerId);
      if (asked.replayed) this.replayed += 1;
      return asked;
    };
    const first = await this.#untilOver(attempt);
    const last = first.outcome === "exact" ? await this.#untilOver(attempt) : first;
    if (ids.size > 1) this.remade += 1;
    return last;
  };

  async #untilOver(attempt: () => Promise<Asked>): Promise<Asked> {
    let asked = await attempt();
    for (let attempts = 1; attempts < attemptsMax && isTemporary(asked); attempts += 1) {
      if (asked.outcome === "refused") {
        this.refusals.push(`${asked.received.status} ${asked.received.code}`);
        await pass(afterRefusalMs);
      }
      asked = await attempt();
    }
    return asked;
  }

  async #attempt(chat: ScriptedChat, options: AskOptions): Promise<Asked> {
    const { random, staysMaxMs, silentMs } = this.#patience;
    const signal = staysMaxMs === undefined ? undefined : AbortSignal.timeout(random.between(5, staysMaxMs));
    const silence = silentMs === undefined ? {} : { silentMs: random.between(silentMs, silentMs * 2) };
    const asked = await askOverHttp(chat, { ...options, ...(signal && { signal }), ...silence });
    if (asked.outcome !== "broken off") return asked;
    if (signal?.aborted) this.dropped += 1;
    else this.broken += 1;
    return asked;
  }
}

/** True if the same request may get its answer later. */
function isTemporary({ outcome, received: { status = 0, code } }: Asked): boolean {
  return outcome === "broken off" || (outcome === "refused" && (status >= 500 || code === "idempotency_key_in_use"));
}
