import { createHash } from "node:crypto";
import { Fault } from "#shared/fault/fault.ts";
import type { Timing } from "#shared/protocol/timing.ts";

/** A request as it is told from others. */
export interface Fingerprinted {
  readonly kind: string;
  readonly modelId: string;
  readonly body: Uint8Array;
}

/**
 * What a death counts. A runtime that breaks off under a request was most likely killed by it; a machine that is lost may
 * have been switched off, so it takes three of them.
 */
const weights = { runtime: 3, machine: 2 } as const;
const deadly = 6;
/** Requests that are remembered at once; the oldest are forgotten first. */
const requestsMax = 1_000;

/**
 * Requests under which runtimes died. After two of them a request is not passed on to a third, nor when it comes again:
 * official clients repeat what failed, and would kill one machine after the other.
 */
export class DeadlyRequests {
  readonly #timing: Timing;
  readonly #deaths = new Map<string, { weight: number; untilMs: number }>();

  constructor(timing: Timing) {
    this.#timing = timing;
  }

  died(what: keyof typeof weights, request: Fingerprinted, nowMs: number): void {
    const print = fingerprint(request);
    const known = this.#deaths.get(print);
    const weight = weights[what] + (known !== undefined && nowMs < known.untilMs ? known.weight : 0);
    this.#deaths.delete(print);
    for (const oldest of this.#deaths.keys()) {
      if (this.#deaths.size < requestsMax) break;
      this.#deaths.delete(oldest);
    }
    this.#deaths.set(print, { weight, untilMs: nowMs + this.#timing.deadlyRememberMs });
  }

  /** Throws when enough died under this very request. It costs nothing while nothing died. */
  refuse(request: Fingerprinted, nowMs: number): void {
    if (this.#deaths.size === 0) return;
    const known = this.#deaths.get(fingerprint(request));
    if (known === undefined || nowMs >= known.untilMs || known.weight < deadly) return;
    throw new Fault("poison_request", {
      message:
        "The model servers that worked on this request broke off one after the other, so it is not passed on again for a while.",
    });
  }
}

function fingerprint({ kind, modelId, body }: Fingerprinted): string {
  return createHash("sha256").update(`${kind} ${modelId} `).update(body).digest("base64");
}
