import type { BrokerMessage } from "#shared/broker/broker.ts";
import { decodeJson } from "#shared/protocol/frame-payload.ts";
import { presence, type Presence } from "#shared/protocol/presence.ts";
import { limits } from "#shared/protocol/limits.ts";
import { presenceSubject } from "#shared/protocol/subjects.ts";

interface Latest {
  readonly bytes: Uint8Array;
  readonly presence: Presence;
}

/** The latest presences of this many machines are kept. Beyond that, all are dropped, and each is parsed anew once. */
const machinesMax = 10_000;
/** The longest presence that is kept. An agent's presence is a tenth of this; a longer one is parsed each time. */
const bytesMax = 4_096;

/**
 * Parses the presences of machines. A machine that is as busy as a second ago sends the same bytes, which are not
 * parsed again. In a large fleet a gateway would do little else. A parsed presence lives for a second, too long for
 * the garbage collector to collect it young.
 */
export class PresenceReader {
  readonly #latest = new Map<string, Latest>();

  /**
   * Returns the presence that a machine sent under its own name, or undefined for anything else. Equal bytes give the
   * same object.
   */
  read({ subject, data }: Pick<BrokerMessage, "subject" | "data">): Presence | undefined {
    const latest = this.#latest.get(subject);
    if (latest !== undefined && Buffer.compare(latest.bytes, data) === 0) return latest.presence;
    if (data.byteLength > limits.presenceBytesMax) return undefined;
    const told = decodeJson(presence, data);
    if (told === undefined || subject !== presenceSubject(told.machine)) return undefined;
    if (told.state === "gone" || data.byteLength > bytesMax) this.#latest.delete(subject);
    else this.#keep(subject, { bytes: new Uint8Array(data), presence: told });
    return told;
  }

  #keep(subject: string, latest: Latest): void {
    if (this.#latest.size >= machinesMax && !this.#latest.has(subject)) this.#latest.clear();
    this.#latest.set(subject, latest);
  }
}
