import type { BrokerMessage } from "#shared/broker/broker.ts";
import { decodeJson } from "#shared/protocol/frame-payload.ts";
import { presence, type Presence } from "#shared/protocol/presence.ts";
import { presenceSubject } from "#shared/protocol/subjects.ts";

interface Latest {
  readonly bytes: Uint8Array;
  readonly presence: Presence;
}

/** The latest of so many machines are kept; then all are let go of, and each is read anew once. */
const machinesMax = 10_000;
/** An agent's presence is a tenth of this; a longer one is read each time. */
const bytesMax = 4_096;

/**
 * Reads what machines say of themselves. One that is as busy as it was a second ago says the same again, which is not read
 * again: of a large fleet a gateway would do little else, and what is read stays for a second, too long to be collected young.
 */
export class PresenceReader {
  readonly #latest = new Map<string, Latest>();

  /** What a machine says under its own name; nothing when it is something else. The same object when it is the same. */
  read({ subject, data }: Pick<BrokerMessage, "subject" | "data">): Presence | undefined {
    const latest = this.#latest.get(subject);
    if (latest !== undefined && Buffer.compare(latest.bytes, data) === 0) return latest.presence;
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
