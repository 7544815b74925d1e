import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { z } from "zod";
import type { Clock } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";

const sightings = z.record(z.string(), z.int().nonnegative());

/**
 * Bounds the sightings, several times the models that a machine may offer. Beyond it, the oldest sightings are
 * forgotten.
 */
const sightingsMax = 10_000;

/**
 * Remembers when this machine first saw each model whose runtime does not report a creation time. A file keeps them
 * across restarts; where it cannot be written, they last as long as the agent runs.
 */
export class FirstSightings {
  readonly #file: string;
  readonly #clock: Pick<Clock, "wall">;
  readonly #log: Pick<Log, "warn">;
  #seconds: Map<string, number> | undefined;
  #writing = false;

  constructor(options: { file: string; clock: Pick<Clock, "wall">; log: Pick<Log, "warn"> }) {
    this.#file = options.file;
    this.#clock = options.clock;
    this.#log = options.log;
  }

  secondsOf(model: string): number {
    this.#seconds ??= this.#read();
    const known = this.#seconds.get(model);
    if (known !== undefined) return known;
    const now = Math.floor(this.#clock.wall() / 1_000);
    this.#seconds.set(model, now);
    for (const oldest of this.#seconds.keys()) {
      if (this.#seconds.size <= sightingsMax) break;
      this.#seconds.delete(oldest);
    }
    this.#writeSoon(this.#seconds);
    return now;
  }

  /** Schedules one write for all models that are seen in one look. */
  #writeSoon(seconds: ReadonlyMap<string, number>): void {
    if (this.#writing) return;
    this.#writing = true;
    setImmediate(() => {
      this.#writing = false;
      this.#write(seconds);
    });
  }

  #read(): Map<string, number> {
    try {
      return new Map(Object.entries(sightings.parse(JSON.parse(readFileSync(this.#file, "utf8")))));
    } catch {
      return new Map();
    }
  }

  #write(seconds: ReadonlyMap<string, number>): void {
    try {
      mkdirSync(dirname(this.#file), { recursive: true, mode: 0o700 });
      writeFileSync(`${this.#file}.new`, `${JSON.stringify(Object.fromEntries(seconds), null, 2)}\n`, { mode: 0o600 });
      renameSync(`${this.#file}.new`, this.#file);
    } catch (error) {
      this.#log.warn({ err: error }, "the models seen for the first time could not be noted");
    }
  }
}
