import { judgeToken } from "#shared/records/judge-key.ts";
import { Fault } from "#shared/fault/fault.ts";
import { changeKey } from "#shared/records/change-key.ts";
import {
  type FoundKey,
  judgeProven,
  type KeyRecord,
  type KeyVerdict,
  type ProvenKey,
} from "#shared/records/key-record.ts";
import type { KeyStore } from "#shared/records/key-store.ts";
import type { KeyId, KeyToken } from "#shared/keys/key-token.ts";
import type { Peppers } from "#shared/keys/pepper.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";

/** Keys that a gateway keeps; above it, the least recently used ones are looked up again. */
export const knownKeysMax = 10_000;

/** Time since the store was last heard from in which no relevant change can have been missed: far below 5 s. */
const heardForMs = 3_000;
/** While no changes are received, the result of a lookup holds for this long. */
const askedForMs = 1_000;
/** A store that has just failed is not asked about known keys for this long. */
const failedForMs = 1_000;

type KeyPrint = string;

interface KnownKey {
  readonly proven: ProvenKey;
  readonly askedAtMs: number;
}

interface KeyQuestion {
  overtaken: boolean;
}

interface KnownKeysOptions {
  readonly keys: Pick<KeyStore, "find">;
  readonly peppers: Peppers;
  readonly clock: Pick<Clock, "now" | "wall">;
  /** Time for which known keys stay usable while the store is away; 0 disables this. */
  readonly awayMs: number;
  /** Called with a valid key whose digest was made with the pepper that is being replaced. */
  readonly onOldPepper: (token: KeyToken, proven: ProvenKey) => void;
}

/**
 * The keys that have proved themselves to this gateway, by their prints. A known key is checked without a lookup,
 * because the store reports every change (`follow-key-changes.ts`) and is heard from all the time. When it is not, keys
 * are looked up again. If the store does not answer, known keys stay usable for a bounded time.
 */
export class KnownKeys {
  readonly #options: KnownKeysOptions;
  /** Known keys by print. Above half of `knownKeysMax`, the key that was used last is at the end. */
  readonly #known = new Map<KeyPrint, KnownKey>();
  readonly #prints = new Map<KeyId, Set<KeyPrint>>();
  readonly #asking = new Map<KeyPrint, Promise<KeyVerdict>>();
  #hears = false;
  #heardAtMs = -Infinity;
  #failedAtMs = -Infinity;
  /** Lookups under way, by key: a change in between overtakes their results. */
  readonly #questions = new Map<KeyId, Set<KeyQuestion>>();

  constructor(options: KnownKeysOptions) {
    this.#options = options;
  }

  /** True if known keys can be used though the store may be away. */
  get usableWhileStoreAway(): boolean {
    return this.#options.clock.now() - this.#heardAtMs < this.#options.awayMs;
  }

  /** True if this very key has proved itself here, and no change of it was reported since. */
  has(token: KeyToken): boolean {
    return this.#known.has(token.print);
  }

  /** Returns the verdict on a known key; undefined if it has to be looked up. */
  recall(token: KeyToken): KeyVerdict | undefined {
    const { clock } = this.#options;
    const { print } = token;
    const known = this.#known.get(print);
    if (known === undefined || !this.#holds(known)) return undefined;
    // The order of use matters only when a key may soon have to go.
    if (this.#known.size > knownKeysMax / 2) {
      this.#known.delete(print);
      this.#known.set(print, known);
    }
    return judgeProven(known.proven, clock.wall());
  }

  /**
   * Looks up a key in the store, once for all simultaneous callers. Fails with `auth_unavailable` when the store is
   * away and the key cannot go on without it.
   */
  ask(token: KeyToken): Promise<KeyVerdict> {
    const { print } = token;
    const asking = this.#asking.get(print) ?? this.#ask(token, print).finally(() => this.#asking.delete(print));
    this.#asking.set(print, asking);
    return asking;
  }

  /** Notes that the store has answered, and has reported all changes so far. */
  heard(): void {
    this.#hears = true;
    this.#heardAtMs = this.#options.clock.now();
    this.#failedAtMs = -Infinity;
  }

  away(): void {
    this.#hears = false;
  }

  forget(id: KeyId): void {
    for (const question of this.#questions.get(id) ?? []) question.overtaken = true;
    for (const print of this.#prints.get(id) ?? []) this.#known.delete(print);
    this.#prints.delete(id);
  }

  forgetAll(): void {
    for (const questions of this.#questions.values()) for (const each of questions) each.overtaken = true;
    this.#known.clear();
    this.#prints.clear();
  }

  async #ask(token: KeyToken, print: KeyPrint): Promise<KeyVerdict> {
    const { peppers, clock } = this.#options;
    let verdict: KeyVerdict;
    try {
      verdict = await this.#judge(token);
    } catch (error) {
      this.#failedAtMs = clock.now();
      const known = this.#known.get(print);
      if (known !== undefined && this.#goesOn(known)) return judgeProven(known.proven, clock.wall());
      const { internal, message } = Fault.from(error);
      throw authUnavailable(internal ?? message);
    }
    this.#remove(token.id, print);
    if (verdict.outcome !== "valid") return verdict;
    const { proven } = verdict;
    this.#keep(token.id, print, { proven, askedAtMs: clock.now() });
    const isCurrentSecret = proven.secretUntil === Infinity;
    if (isCurrentSecret && proven.record.pepper !== peppers.current.fingerprint) {
      this.#options.onOldPepper(token, proven);
    }
    return verdict;
  }

  /**
   * Looks up and judges a key. Repeats a lookup that a change has overtaken, or a key that was just revoked could pass.
   */
  async #judge(token: KeyToken): Promise<KeyVerdict> {
    const { keys, peppers, clock } = this.#options;
    const question: KeyQuestion = { overtaken: false };
    const questions = this.#questions.getOrInsertComputed(token.id, () => new Set());
    questions.add(question);
    try {
      let found: FoundKey;
      do {
        question.overtaken = false;
        found = await keys.find(token.id);
      } while (question.overtaken);
      return judgeToken({ found, token, peppers, nowMs: clock.wall() });
    } finally {
      questions.delete(question);
      if (questions.size === 0) this.#questions.delete(token.id);
    }
  }

  #keep(id: KeyId, print: KeyPrint, known: KnownKey): void {
    this.#known.set(print, known);
    this.#prints.getOrInsertComputed(id, () => new Set()).add(print);
    if (this.#known.size <= knownKeysMax) return;
    const [oldest] = this.#known;
    if (oldest !== undefined) this.#remove(oldest[1].proven.record.id, oldest[0]);
  }

  #remove(id: KeyId, print: KeyPrint): void {
    this.#known.delete(print);
    const others = this.#prints.get(id);
    others?.delete(print);
    if (others?.size === 0) this.#prints.delete(id);
  }

  #holds(known: KnownKey): boolean {
    const { clock, awayMs } = this.#options;
    const nowMs = clock.now();
    if (this.#hears && nowMs - this.#heardAtMs <= heardForMs) return true;
    if (nowMs - known.askedAtMs < Math.min(askedForMs, awayMs)) return true;
    return nowMs - this.#failedAtMs <= failedForMs && this.#goesOn(known);
  }

  #goesOn(known: KnownKey): boolean {
    const confirmedAtMs = Math.max(known.askedAtMs, this.#heardAtMs);
    return this.#options.clock.now() - confirmedAtMs < this.#options.awayMs;
  }
}

/** Returns a function for the cache salts of keys. Each salt is made once for as long as the key's record is known. */
export function saltsOf({ current }: Peppers): (key: KeyRecord) => string {
  const salts = new WeakMap<KeyRecord, string>();
  return (key) => salts.getOrInsertComputed(key, () => current.cacheSalt(key.id));
}

interface Dependencies {
  readonly keys: KeyStore;
  readonly peppers: Peppers;
  readonly clock: Pick<Clock, "wall">;
  readonly log: Pick<Log, "warn">;
}

/**
 * Hashes a key that has just proved itself with the pepper of this process, if that is the store's latest. Processes
 * that only accept the new pepper besides their own must not take keys back to the old one.
 */
export async function moveToNewPepper(
  key: { token: KeyToken; record: KeyRecord },
  dependencies: Dependencies,
): Promise<void> {
  const { token, record } = key;
  const { keys, peppers, clock, log } = dependencies;
  const { current } = peppers;
  try {
    const [latest] = await keys.peppers();
    if (latest !== current.fingerprint) return;
    const secret = { digest: token.digest(current), pepper: current.fingerprint };
    const change = { action: "repeppered", from: record.digest, secret } as const;
    await changeKey(record.id, change, { keys, clock, actor: { by: "gateway" } });
  } catch (error) {
    log.warn({ err: error, key: record.id }, "a key stays under the pepper that is being replaced");
  }
}

/** Returns `auth_unavailable`, never a 401: people and programs throw a key away that is called invalid. */
export function authUnavailable(internal: string): Fault {
  return new Fault("auth_unavailable", {
    message: "The key store is unavailable, so the key cannot be checked. Try again in a moment.",
    internal,
  });
}
