import { setImmediate as nextTurn } from "node:timers/promises";
import { Fault } from "#shared/fault/fault.ts";
import type { KeyId } from "#shared/keys/key-token.ts";
import type { Peppers } from "#shared/keys/pepper.ts";
import { seal, unseal } from "#shared/keys/seal.ts";
import type { Log } from "#shared/process/log.ts";
import type { KeyRecord } from "#shared/records/key-record.ts";
import type { PutOutcome, StoredResponses, StoringTerms } from "#shared/records/stored-responses.ts";
import { idsIn, isConversationId, storedTurnsMax, tooLong, tooManyTurns, writeIds } from "./stored-turns.ts";
import type { NamedTurns, StoredTurns } from "./stored-turns.ts";

/** Bytes of one stored response with its input. A larger one is answered and not stored. */
export const storedResponseBytesMax = 1024 * 1024;
/** Bytes of the stored turns that one request goes on from. */
export const storedTurnsBytesMax = 8 * 1024 * 1024;

/** A response that is complete: its id, and the text that `writeTurn` made of it. */
export interface MadeResponse {
  readonly id: string;
  readonly text: string;
  /** The conversation that it belongs to, if any. */
  readonly conversation?: string | undefined;
}

interface KeptResponsesOptions {
  readonly stored: StoredResponses;
  readonly peppers: Peppers;
  /** The responses of all keys are stored, and not only of those whose record says so. */
  readonly ofAll: boolean;
  readonly terms: StoringTerms;
  readonly log: Pick<Log, "warn">;
}

/** The responses that a gateway stores for its keys, encrypted with a secret that the store does not have. */
export class KeptResponses {
  readonly #options: KeptResponsesOptions;
  /** The last work on each conversation that is read or that a turn is put into. */
  readonly #atWork = new Map<string, Promise<unknown>>();

  constructor(options: KeptResponsesOptions) {
    this.#options = options;
  }

  mayStore({ storesResponses }: KeyRecord): boolean {
    return this.#options.ofAll || storesResponses === true;
  }

  /** Stores a response. False if it is too large, or there is no room, or the store is away: its client is told so. */
  async store(key: KeyId, response: MadeResponse): Promise<boolean> {
    if (Buffer.byteLength(response.text) > storedResponseBytesMax) return false;
    try {
      const outcome = await this.putTurn(key, response);
      if (outcome === "full") throw siteFull();
      return outcome === "stored" || outcome === "known";
    } catch (error) {
      this.#options.log.warn({ key, internal: Fault.from(error).reason }, "a response was not stored");
      return false;
    }
  }

  /**
   * Stores a turn, at the end of its conversation if it has one. Each turn is named at a position of its own, so that turns
   * which end at once are all kept. `unplaced`: the conversation is full or gone.
   */
  async putTurn(key: KeyId, { id, text, conversation }: MadeResponse): Promise<PutOutcome | "unplaced"> {
    if (conversation === undefined) return this.put(key, id, text);
    return this.#inTurn(nameOf(key, conversation), () => this.#putInto(key, conversation, { id, text }));
  }

  async #putInto(key: KeyId, conversation: string, { id, text }: MadeResponse): Promise<PutOutcome | "unplaced"> {
    const position = await this.#hold(key, conversation);
    const outcome = position === undefined ? "known" : await this.put(key, id, text);
    if (outcome === "full" || outcome === "closed") return outcome;
    // A resumed answer may have been put there by another gateway.
    const isPlaced = async () => (await this.#placesOf(key, conversation))?.values().some((each) => each === id);
    if (outcome === "known" && (await isPlaced())) return "known";
    return this.append(key, conversation, id, position);
  }

  /** Puts a text at the end of a conversation: at a position that is held for it, or else at the first free one. */
  async append(key: KeyId, conversation: string, text: string, held?: string): Promise<PutOutcome | "unplaced"> {
    for (let position = held ?? (await this.#hold(key, conversation)); position;) {
      const outcome = await this.put(key, position, text);
      if (outcome !== "known") return outcome;
      // An older gateway was there first.
      position = await this.#hold(key, conversation);
    }
    return "unplaced";
  }

  #hold(key: KeyId, conversation: string): Promise<string | undefined> {
    return this.#options.stored.holdPosition(key, conversation, storedTurnsMax);
  }

  /** Stores a text under an id. */
  put(key: KeyId, id: string, text: string): Promise<PutOutcome> {
    const { stored, peppers, terms } = this.#options;
    const sealed = seal(Buffer.from(text), peppers.responsesKeys(key)[0], nameOf(key, id));
    return stored.put(key, { id, sealed }, terms);
  }

  /** Returns the text at an id; undefined if this key has none. */
  async find(key: KeyId, id: string): Promise<string | undefined> {
    return (await this.#fetch(key, [id])).get(id);
  }

  remove(key: KeyId, id: string): Promise<boolean> {
    return this.#options.stored.remove(key, id);
  }

  /** Deletes a conversation. Its responses stay. */
  async removeConversation(key: KeyId, id: string): Promise<boolean> {
    const turns = await this.turnsOf(key, id);
    const isRemoved = await this.remove(key, id);
    for (const position of turns?.keys() ?? []) await this.remove(key, position);
    return isRemoved;
  }

  /** Returns the ids of the turns of a conversation by their positions; undefined without the conversation. */
  turnsOf(key: KeyId, conversation: string): Promise<ReadonlyMap<string, string> | undefined> {
    return this.#inTurn(nameOf(key, conversation), () => this.#placesOf(key, conversation));
  }

  /** Does the work on a conversation piece by piece, so that requests of others come in between. */
  async #inTurn<Result>(name: string, work: () => Promise<Result>): Promise<Result> {
    const done = Promise.resolve(this.#atWork.get(name)).then(nextTurn).then(work);
    const last = done.catch(() => undefined);
    this.#atWork.set(name, last);
    try {
      return await done;
    } finally {
      if (this.#atWork.get(name) === last) this.#atWork.delete(name);
    }
  }

  async #placesOf(key: KeyId, conversation: string): Promise<Map<string, string> | undefined> {
    const turns = await this.#fetch(key, [conversation, ...placesIn(conversation)]);
    return turns.delete(conversation) ? turns : undefined;
  }

  /**
   * Returns the stored turns that a request names, with the turns before them. Only a request that names one waits.
   * `takeRoom` is told their bytes, and throws where there is no memory for them: the request itself may be small.
   */
  async turnsNamed(
    key: KeyId,
    { latest, referred }: NamedTurns,
    takeRoom: (bytes: number) => void,
  ): Promise<StoredTurns> {
    const turns = new Map<string, string>();
    const needed = new Set(referred);
    for (const id of latest) {
      const text = await this.#latestText(key, id);
      if (text === undefined) continue;
      const ids = idsIn(text);
      if (ids.length >= storedTurnsMax) throw tooManyTurns(isConversationId(id) ? "conversation" : undefined);
      turns.set(id, text);
      for (const each of ids) needed.add(each);
    }
    if (needed.size === 0) return turns;
    const bytes = await this.#options.stored.bytesOf(key, [...needed]);
    if (bytes > storedTurnsBytesMax)
      throw tooManyBytes(latest.values().some(isConversationId) ? "conversation" : undefined);
    takeRoom(bytes);
    const missing = [...needed].filter((id) => !turns.has(id));
    for (const [id, text] of await this.#fetch(key, missing)) turns.set(id, text);
    return turns;
  }

  async #latestText(key: KeyId, id: string): Promise<string | undefined> {
    if (!isConversationId(id)) return this.find(key, id);
    const turns = await this.turnsOf(key, id);
    return turns && writeIds([...turns.values()]);
  }

  /** Returns the texts at the ids. Those that were altered, or are under a pepper that is gone, count as deleted. */
  async #fetch(key: KeyId, ids: readonly string[]): Promise<Map<string, string>> {
    const { stored, peppers } = this.#options;
    const keys = peppers.responsesKeys(key);
    const found = await stored.find(key, ids);
    const texts = new Map<string, string>();
    for (const [at, id] of ids.entries()) {
      const sealed = found[at];
      const text = sealed && unseal(sealed, keys, nameOf(key, id))?.bytes;
      if (text !== undefined) texts.set(id, text.toString());
    }
    return texts;
  }
}

/** Returns the fault of a site whose stored responses take all their bytes. */
export function siteFull(): Fault {
  return new Fault("insufficient_quota", {
    message:
      "Nothing more is stored: the responses of this site take all bytes that they may (TRUNKLINE_STORE_RESPONSES_BYTES_MAX). Delete old ones, or ask the operator for more.",
    internal: "the stored responses fill TRUNKLINE_STORE_RESPONSES_BYTES_MAX",
  });
}

/** Returns the fault of stored turns that are too large to be read for one request. */
export function tooManyBytes(param?: string): Fault {
  const bound = `The stored turns that a request names may hold at most ${storedTurnsBytesMax} bytes (storedTurnsBytesMax)`;
  return tooLong("invalid_value", bound, param);
}

/** The names of the positions of a conversation's turns. */
function placesIn(conversation: string): string[] {
  return Array.from({ length: storedTurnsMax }, (_, position) => `${conversation}.${position + 1}`);
}

/** The name under which a text is sealed: no writer of the store can pass it for another one, or for another key's. */
function nameOf(key: KeyId, id: string): string {
  return `${key} ${id}`;
}
