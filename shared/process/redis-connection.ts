import type { ChainableCommander, Redis } from "ioredis";
import { Fault } from "../fault/fault.ts";
import type { Log } from "./log.ts";
import { exitCodes, StartFailure } from "./start-failure.ts";

interface RedisOptions {
  /** `redis://` or `rediss://`, with `user:password@` and `/database` if need be. */
  readonly url: string;
  readonly commandTimeoutMs?: number | undefined;
  /** With commands under way and not a byte back for so long, the connection is given up and made anew. */
  readonly silenceMsMax?: number | undefined;
  /** Stands before the name of every key. */
  readonly keyPrefix?: string | undefined;
  readonly log?: Pick<Log, "info" | "warn"> | undefined;
}

export const redisKeyPrefix = "trunkline:";

/** How long one command, or several sent together, may take before its caller is told that Redis is away. */
export const redisCommandTimeoutMs = 150;
const connectTimeoutMs = 2_000;
/** Longer than a connection takes: a server that is still loading its data is waited for as well. */
const openTimeoutMs = 5_000;
const silenceMsMaxDefault = 1_000;
/** A socket that never stood is given up at once, or it would keep a process that could not start from its end. */
const disconnectMsMax = 100;
const reconnectDelayMsMin = 25;
const reconnectDelayMsMax = 400;

/** Connects once, or fails with a line for the operator; from then on it reconnects by itself for ever. */
export async function connectRedis(options: RedisOptions): Promise<RedisConnection> {
  // Whoever keeps keys in the state folder does without, and starts sooner.
  const { Redis: Client } = await import("ioredis");
  const redis = new Client(options.url, {
    protocol: 2,
    keyPrefix: options.keyPrefix ?? redisKeyPrefix,
    lazyConnect: true,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    socketTimeout: options.silenceMsMax ?? silenceMsMaxDefault,
    disconnectTimeout: disconnectMsMax,
    connectTimeout: connectTimeoutMs,
    retryStrategy: reconnectDelayMs,
    // A server that has become a replica of another: the name may lead to the new master by now.
    reconnectOnError: (error) => error.message.startsWith("READONLY"),
  });
  let reason = `no answer within ${openTimeoutMs} ms`;
  redis.on("error", (error) => (reason = reasonOf(error)));
  const deadline = setTimeout(() => redis.disconnect(), openTimeoutMs);
  try {
    await redis.connect();
  } catch {
    redis.disconnect();
    throw new StartFailure(
      exitCodes.unavailable,
      `Redis at ${new URL(options.url).host} cannot be used (${reason}): start it there, or set TRUNKLINE_REDIS_URL to where it is, with the user and password that it accepts.`,
    );
  } finally {
    clearTimeout(deadline);
  }
  if (options.log !== undefined) logComings(redis, options.log);
  return new RedisConnection(redis, options.commandTimeoutMs ?? redisCommandTimeoutMs);
}

/** One line when Redis goes and one when it is back, however often a new connection is tried in between. */
function logComings(redis: Redis, log: Pick<Log, "info" | "warn">): void {
  let away = false;
  redis.on("close", () => {
    if (!away) log.warn("Redis is away; it is looked for until it is back");
    away = true;
  });
  redis.on("ready", () => {
    if (away) log.info("Redis is back");
    away = false;
  });
}

/** Half of each delay is chance, so that many gateways do not come back in step. */
function reconnectDelayMs(attempt: number): number {
  const delayMs = Math.min(reconnectDelayMsMin * 2 ** Math.min(attempt, 10), reconnectDelayMsMax);
  return delayMs / 2 + (Math.random() * delayMs) / 2;
}

/**
 * A connection on which no command can hang: it fails at once while Redis is away, and soon when Redis is frozen.
 * Whatever goes wrong is a Fault `backend_unavailable`.
 */
export class RedisConnection {
  readonly #redis: Redis;
  readonly #commandTimeoutMs: number;

  constructor(redis: Redis, commandTimeoutMs: number) {
    this.#redis = redis;
    this.#commandTimeoutMs = commandTimeoutMs;
  }

  /**
   * `purpose` says in the log what was tried. Whoever sends more than one command asks before each further one whether
   * it is too late for it: its caller has been told that nothing came of it.
   */
  async run<Reply>(
    purpose: string,
    command: (redis: Redis, isTooLate: () => boolean) => Promise<Reply>,
  ): Promise<Reply> {
    const deadline = startDeadline(this.#commandTimeoutMs);
    try {
      return await Promise.race([command(this.#redis, deadline.isOver), deadline.passed]);
    } catch (error) {
      throw redisIsAway(purpose, error);
    } finally {
      deadline.cancel();
    }
  }

  /** Several commands in one round trip. The replies come in the same order; one error fails all. */
  async pipeline(purpose: string, commands: (batch: ChainableCommander) => ChainableCommander): Promise<unknown[]> {
    return this.run(purpose, async (redis) => repliesOf(await commands(redis.pipeline()).exec()));
  }

  /** Several commands that happen all at once or not at all. */
  async transaction(purpose: string, commands: (batch: ChainableCommander) => ChainableCommander): Promise<unknown[]> {
    return this.run(purpose, async (redis) => repliesOf(await commands(redis.multi()).exec()));
  }

  close(): void {
    this.#redis.removeAllListeners("close");
    this.#redis.disconnect();
  }
}

/**
 * A time limit that a busy event loop cannot fake: when it is up, replies that have arrived are still read first. The
 * library's own `commandTimeout` blames Redis for every pause of this process that is longer than the limit.
 */
function startDeadline(timeoutMs: number): { passed: Promise<never>; isOver: () => boolean; cancel: () => void } {
  const { promise, reject } = Promise.withResolvers<never>();
  let over = false;
  const pass = (): void => {
    over = true;
    reject(new Error(`no reply within ${timeoutMs} ms`));
  };
  const timer = setTimeout(() => setImmediate(pass), timeoutMs);
  return { passed: promise, isOver: () => over, cancel: () => clearTimeout(timer) };
}

function repliesOf(results: [error: Error | null, reply: unknown][] | null): unknown[] {
  if (results === null) throw new Error("the transaction was not carried out");
  return results.map(([error, reply]) => {
    if (error !== null) throw error;
    return reply;
  });
}

/** Without the library's error as its cause: that carries the command's arguments, among them passwords and records. */
function redisIsAway(purpose: string, error: unknown): Fault {
  return new Fault("backend_unavailable", {
    message: "A store that this request needs does not answer just now. Try again in a moment.",
    internal: `Redis, asked to ${purpose}: ${reasonOf(error)}`,
  });
}

/** Node says nothing in the message when several addresses of one host all refused. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.message !== "") return error.message;
  return "code" in error ? String(error.code) : error.name;
}
