import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { Fault } from "#shared/fault/fault.ts";
import type { KeyId } from "#shared/keys/key-token.ts";
import type { Peppers } from "#shared/keys/pepper.ts";
import type { Log } from "#shared/process/log.ts";
import type { KeyRecord } from "#shared/records/key-record.ts";
import type { StoredResponses } from "#shared/records/stored-responses.ts";
import { headOf, type NamedTurns, namedTurns, type StoredTurns, storedTurnsMax } from "./stored-turns.ts";

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
  /** The conversation that it belongs to, if any. */
  readonly conversation?: string | undefined;
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
  async store(key: KeyId, { id, text, conversation }: MadeResponse): Promise<boolean> {
    const { log } = this.#options;
    if (Buffer.byteLength(text) > storedResponseBytesMax) return false;
    try {
      await this.put(key, id, text);
      return conversation === undefined || (await this.append(key, conversation, id));
    } catch (error) {
      log.warn({ key, internal: Fault.from(error).reason }, "a response was not stored");
      return false;
    }
  }

  /** Stores a text under an id. False if there is one already: it stays as it is. */
  put(key: KeyId, id: string, text: string): Promise<boolean> {
    const { stored, peppers, keptMs } = this.#options;
    const sealed = seal(text, peppers.responsesKeys(key)[0], nameOf(key, id));
    return stored.put(key, { id, sealed }, keptMs);
  }

  /**
   * Returns the ids of the turns of a conversation, undefined without it. Each turn is named at a place of its own, so that
   * turns which end at once are all kept.
   */
  async turnsOf(key: KeyId, conversation: string): Promise<readonly string[] | undefined> {
    const [first, ...turns] = await this.#fetch(key, placesIn(conversation));
    return first?.[0] === conversation ? turns.map(([, id]) => id) : undefined;
  }

  /** Puts a turn at the end of a conversation. False if it is full, or was deleted meanwhile. */
  async append(key: KeyId, conversation: string, id: string): Promise<boolean> {
    const places = await this.#fetch(key, placesIn(conversation));
    if (!places.has(conversation)) return false;
    // A resumed answer may have been put there by another gateway.
    if (places.values().some((each) => each === id)) return true;
    for (const place of placesIn(conversation)) if (!places.has(place) && (await this.put(key, place, id))) return true;
    return false;
  }

  /** Deletes a conversation. Its responses stay. */
  async removeConversation(key: KeyId, id: string): Promise<boolean> {
    const places = await this.#fetch(key, placesIn(id));
    for (const place of [...places.keys()].toReversed()) await this.remove(key, place);
    return places.has(id);
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
  namedIn(key: KeyId, bytes: Buffer, takeRoom: (bytes: number) => void): Promise<StoredTurns> {
    return this.turnsNamed(key, namedTurns(bytes), takeRoom);
  }

  /** Returns these turns. At the id of a conversation are the ids of its turns, with spaces between. */
  async turnsNamed(
    key: KeyId,
    { previous, conversations, referred }: NamedTurns,
    takeRoom: (bytes: number) => void,
  ): Promise<StoredTurns> {
    const param = conversations.length > 0 ? "conversation" : "previous_response_id";
    const latest = await this.#fetch(key, previous);
    const turns = new Map(latest);
    for (const text of latest.values()) {
      const { before, bytes: chainBytes } = headOf(text);
      if (before.length + 1 >= storedTurnsMax) throw tooManyTurns();
      if (chainBytes > storedTurnsBytesMax) throw tooLongTurns(param);
      takeRoom(chainBytes);
      for (const [id, each] of await this.#fetch(key, before)) turns.set(id, each);
    }
    const others = new Set(referred);
    for (const id of conversations) {
      const ids = await this.turnsOf(key, id);
      if (ids !== undefined) turns.set(id, ids.join(" "));
      for (const each of ids ?? []) others.add(each);
    }
    let bytesLeft = storedTurnsBytesMax;
    const missing = [...others].filter((id) => !turns.has(id));
    for (let at = 0; at < missing.length; at += fetchedAtOnce) {
      for (const [id, text] of await this.#fetch(key, missing.slice(at, at + fetchedAtOnce))) {
        turns.set(id, text);
        takeRoom(text.length);
        bytesLeft -= text.length;
      }
      if (bytesLeft < 0) throw tooLongTurns(param);
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

/** The id of a conversation, and the places of its turns. */
function placesIn(conversation: string): string[] {
  return Array.from({ length: storedTurnsMax }, (_, place) =>
    place === 0 ? conversation : `${conversation}.${place}`,
  );
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

function tooLongTurns(param: string): Fault {
  return new Fault("invalid_value", {
    message: `The stored turns that a request names may hold at most ${storedTurnsBytesMax} bytes (storedTurnsBytesMax); ${remedy}.`,
    param,
  });
}
