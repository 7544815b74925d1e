import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { Fault } from "#shared/fault/fault.ts";
import type { KeyId } from "#shared/keys/key-token.ts";
import type { Peppers } from "#shared/keys/pepper.ts";
import type { Log } from "#shared/process/log.ts";
import type { KeyRecord } from "#shared/records/key-record.ts";
import type { StoredResponses } from "#shared/records/stored-responses.ts";
import { headOf, namedTurns, type StoredTurns, storedTurnsMax } from "./stored-turns.ts";

/** Bytes of one stored response with its input. A larger one is answered and not stored. */
export const storedResponseBytesMax = 1024 * 1024;
/** Bytes of the stored turns that one request goes on from. */
export const storedTurnsBytesMax = 8 * 1024 * 1024;
/** Turns that are fetched at once where their size is not known before. */
const fetchedAtOnce = 8;

/** A response that is complete: its id, and the text that `writeTurn` made of it. */
export interface MadeResponse {
  readonly id: string;
  readonly text: string;
}

interface Options {
  readonly stored: StoredResponses;
  readonly peppers: Peppers;
  /** The responses of all keys are stored, and not only of those whose record says so. */
  readonly ofAll: boolean;
  readonly keptMs: number;
  readonly log: Pick<Log, "warn">;
}

/** The responses that a gateway stores for its keys, encrypted with a secret that the store does not have. */
export class KeptResponses {
  readonly #options: Options;

  constructor(options: Options) {
    this.#options = options;
  }

  mayStore({ storesResponses }: KeyRecord): boolean {
    return this.#options.ofAll || storesResponses === true;
  }

  /** Stores a response. False if it is too large or the store is away: its client is told so. */
  async store(key: KeyId, { id, text }: MadeResponse): Promise<boolean> {
    const { stored, peppers, keptMs, log } = this.#options;
    if (Buffer.byteLength(text) > storedResponseBytesMax) return false;
    try {
      const sealed = seal(text, peppers.responsesKeys(key)[0], nameOf(key, id));
      await stored.put(key, { id, sealed }, keptMs);
      return true;
    } catch (error) {
      log.warn({ key, internal: Fault.from(error).reason }, "a response was not stored");
      return false;
    }
  }

  /** Returns a response with its input; undefined if this key has none with the id. */
  async find(key: KeyId, id: string): Promise<string | undefined> {
    return (await this.#fetch(key, [id])).get(id);
  }

  remove(key: KeyId, id: string): Promise<boolean> {
    return this.#options.stored.remove(key, id);
  }

  /**
   * Returns the stored turns that a request names, with the turns before them. Only a request that names one waits.
   * `takeRoom` is told their bytes, and throws where there is no memory for them: the request itself may be small.
   */
  async namedIn(key: KeyId, bytes: Buffer, takeRoom: (bytes: number) => void): Promise<StoredTurns> {
    const { previous, referred } = namedTurns(bytes);
    const latest = await this.#fetch(key, previous);
    const turns = new Map(latest);
    for (const text of latest.values()) {
      const { before, bytes: chainBytes } = headOf(text);
      if (before.length + 1 >= storedTurnsMax) throw tooManyTurns();
      if (chainBytes > storedTurnsBytesMax) throw tooLongTurns();
      takeRoom(chainBytes);
      for (const [id, each] of await this.#fetch(key, before)) turns.set(id, each);
    }
    let bytesLeft = storedTurnsBytesMax;
    const others = referred.filter((id) => !turns.has(id));
    for (let at = 0; at < others.length; at += fetchedAtOnce) {
      for (const [id, text] of await this.#fetch(key, others.slice(at, at + fetchedAtOnce))) {
        turns.set(id, text);
        takeRoom(text.length);
        bytesLeft -= text.length;
      }
      if (bytesLeft < 0) throw tooLongTurns();
    }
    return turns;
  }

  async #fetch(key: KeyId, ids: readonly string[]): Promise<Map<string, string>> {
    if (ids.length === 0) return new Map();
    const { stored, peppers } = this.#options;
    const keys = peppers.responsesKeys(key);
    const found = await stored.find(key, ids);
    return new Map(
      ids.flatMap((id, at) => {
        const text = open(found[at], keys, nameOf(key, id));
        return text === undefined ? [] : [[id, text] as const];
      }),
    );
  }
}

function nameOf(key: KeyId, id: string): Buffer {
  return Buffer.from(`${key} ${id}`);
}

const cipher = "aes-256-gcm";
const nonceBytes = 12;
const tagBytes = 16;

function seal(text: string, key: Buffer, name: Buffer): Buffer {
  const nonce = randomBytes(nonceBytes);
  const sealing = createCipheriv(cipher, key, nonce).setAAD(name);
  return Buffer.concat([nonce, sealing.update(text, "utf8"), sealing.final(), sealing.getAuthTag()]);
}

/** Undefined for bytes that were altered, or are under a pepper that is gone: they count as deleted. */
function open(sealed: Uint8Array | undefined, keys: readonly Buffer[], name: Buffer): string | undefined {
  if (sealed === undefined || sealed.byteLength < nonceBytes + tagBytes) return undefined;
  for (const key of keys) {
    const opening = createDecipheriv(cipher, key, sealed.subarray(0, nonceBytes), { authTagLength: tagBytes });
    opening.setAAD(name).setAuthTag(sealed.subarray(-tagBytes));
    try {
      const text = opening.update(sealed.subarray(nonceBytes, -tagBytes));
      opening.final();
      return text.toString();
    } catch {}
  }
  return undefined;
}

const remedy = "send the conversation in 'input', or a summary of it";

function tooManyTurns(): Fault {
  return new Fault("array_above_max_length", {
    message: `A conversation may go on from at most ${storedTurnsMax} stored turns (storedTurnsMax); ${remedy}.`,
    param: "previous_response_id",
  });
}

function tooLongTurns(): Fault {
  return new Fault("invalid_value", {
    message: `The stored turns that a request names may hold at most ${storedTurnsBytesMax} bytes (storedTurnsBytesMax); ${remedy}.`,
    param: "previous_response_id",
  });
}
