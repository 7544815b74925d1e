import type { ChainableCommander, Redis } from "ioredis";
import { reasonOf } from "#shared/fault/fault.ts";
import { Fault } from "../fault/fault.ts";
import type { Log } from "./log.ts";
import { exitCodes, StartFailure } from "./lifecycle.ts";

interface RedisOptions {
  /** `redis://` or `rediss://`, optionally with `user:password@` and `/database`. */
  readonly url: string;
  readonly commandTimeoutMs?: number | undefined;
  /** Time without a received byte, while commands are pending, after which the connection is dropped and made anew. */
  readonly silenceMsMax?: number | undefined;
  /** Prefix of every key. */
  readonly keyPrefix?: string | undefined;
  readonly log?: Pick<Log, "info" | "warn"> | undefined;
}

export const redisKeyPrefix = "trunkline:";

/** Timeout of one command, or of several sent together. After it the caller gets a Fault `backend_unavailable`. */
export const redisCommandTimeoutMs = 150;
const timeoutSlices = 6;
/** A timer that fires this late shows that this process itself stood still or is overloaded. */
const ownPauseMs = 20;
const connectTimeoutMs = 2_000;
/** Timeout of the first connect. Longer than a connect takes, to wait for a server that is still loading its data. */
const openTimeoutMs = 5_000;
const silenceMsMaxDefault = 1_000;
/**
 * Bounds the wait for a socket to close that never connected: it would delay the exit of a process that failed to
 * start.
 */
const disconnectMsMax = 100;
const reconnectDelayMsMin = 25;
const reconnectDelayMsMax = 400;

/**
 * Connects once, or fails with a message for the operator. From then on the connection reconnects by itself for ever.
 */
export async function connectRedis(options: RedisOptions): Promise<RedisConnection> {
  // Imported here, so that a gateway with its keys in the state folder does not load it and starts sooner.
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
    // The server has become a replica: the name may resolve to the new master by now.
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

/** Logs one line when Redis disconnects and one when it is back, regardless of the attempts in between. */
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

/** Returns the delay before an attempt. Half of it is random, so that many gateways do not reconnect in step. */
function reconnectDelayMs(attempt: number): number {
  const delayMs = Math.min(reconnectDelayMsMin * 2 ** Math.min(attempt, 10), reconnectDelayMsMax);
  return delayMs / 2 + (Math.random() * delayMs) / 2;
}

type ScriptValues = (string | number | Buffer)[];
/** Runs a script with its keys and values. `purpose` names it in the log. */
export type RedisScript<Reply> = (purpose: string, ...keysAndValues: ScriptValues) => Promise<Reply>;

/**
 * A Redis connection on which no command can hang. A command fails at once while Redis is disconnected, and soon when
 * Redis is frozen. Every failure is a Fault `backend_unavailable`.
 */
export class RedisConnection {
  readonly #redis: Redis;
  readonly #commandTimeoutMs: number;
  #scripts = 0;

  constructor(redis: Redis, commandTimeoutMs: number) {
    this.#redis = redis;
    this.#commandTimeoutMs = commandTimeoutMs;
  }

  /** Runs a command, or several, with a timeout. `purpose` names it in the log. */
  async run<Reply>(purpose: string, command: (redis: Redis) => Promise<Reply>): Promise<Reply> {
    const deadline = startDeadline(this.#commandTimeoutMs);
    try {
      return await Promise.race([command(this.#redis), deadline.passed]);
    } catch (error) {
      throw redisIsAway(purpose, error);
    } finally {
      deadline.cancel();
    }
  }

  /** Runs several commands in one round trip. The replies come in the same order; one error fails all. */
  async pipeline(purpose: string, commands: (batch: ChainableCommander) => ChainableCommander): Promise<unknown[]> {
    return this.run(purpose, async (redis) => {
      const results = (await commands(redis.pipeline()).exec()) ?? [];
      return results.map(([error, reply]) => {
        if (error !== null) throw error;
        return reply;
      });
    });
  }

  /**
   * Returns the function that runs a Lua script on this connection. Redis runs it atomically. It is sent by its hash, and
   * in full to a server that does not know it yet.
   */
  script<Reply>(lua: string, numberOfKeys: number): RedisScript<Reply> {
    const name = `script${(this.#scripts += 1)}`;
    this.#redis.defineCommand(name, { lua, numberOfKeys });
    const command = Reflect.get(this.#redis, name) as (...values: ScriptValues) => Promise<Reply>;
    return (purpose, ...values) => this.run(purpose, (redis) => command.apply(redis, values));
  }

  close(): void {
    this.#redis.removeAllListeners("close");
    this.#redis.disconnect();
  }
}

/**
 * Starts a timeout that a busy event loop cannot trigger falsely. It runs in slices, and a slice in which this process
 * itself was late counts half: a command may then not be sent yet, or its reply not be read. The library's own
 * `commandTimeout` blames Redis for every pause of this process that is longer than the limit.
 */
function startDeadline(timeoutMs: number): { passed: Promise<never>; cancel: () => void } {
  const { promise, reject } = Promise.withResolvers<never>();
  const pass = (): void => reject(new Error(`no reply within ${timeoutMs} ms`));
  const sliceMs = timeoutMs / timeoutSlices;
  let slicesLeft = timeoutSlices;
  let timer: NodeJS.Timeout;
  const wait = (): void => {
    const dueAtMs = performance.now() + sliceMs;
    timer = setTimeout(() => {
      slicesLeft -= performance.now() - dueAtMs > ownPauseMs ? 0.5 : 1;
      if (slicesLeft > 0) wait();
      else setImmediate(pass);
    }, sliceMs);
  };
  wait();
  return { passed: promise, cancel: () => clearTimeout(timer) };
}

/**
 * Returns the fault of a failed command. The library's error is not its cause, since it carries the command's
 * arguments, such as passwords and records.
 */
function redisIsAway(purpose: string, error: unknown): Fault {
  return new Fault("backend_unavailable", {
    message: "A store that this request needs is unavailable. Try again in a moment.",
    internal: `Redis, asked to ${purpose}: ${reasonOf(error)}`,
  });
}
