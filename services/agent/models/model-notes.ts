import { readFileSync } from "node:fs";
import { dirname } from "node:path";
import { z } from "zod";
import type { Clock } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import { setNewest } from "#shared/process/set-newest.ts";
import { makeStateFolder, writeStateFile } from "#shared/process/state-folder.ts";

/** Bounds the notes, several times the models that a machine may offer. Beyond it, the oldest ones are forgotten. */
const notesMax = 10_000;

interface NotesOptions<Note> {
  readonly file: string;
  readonly note: z.ZodType<Note>;
  readonly log: Pick<Log, "warn">;
}

/** Notes of models that outlast the agent, in a file. Where it cannot be written, they last as long as the agent runs. */
export class ModelNotes<Note> {
  readonly #options: NotesOptions<Note>;
  #notes: Map<string, Note> | undefined;
  #writing = false;

  constructor(options: NotesOptions<Note>) {
    this.#options = options;
  }

  get(model: string): Note | undefined {
    this.#notes ??= this.#read();
    return this.#notes.get(model);
  }

  all(): Note[] {
    this.#notes ??= this.#read();
    return [...this.#notes.values()];
  }

  set(model: string, note: Note): void {
    const notes = (this.#notes ??= this.#read());
    setNewest(notes, [model, note], notesMax);
    this.#writeSoon(notes);
  }

  /** Schedules one write for all models that are noted in one look. */
  #writeSoon(notes: ReadonlyMap<string, Note>): void {
    if (this.#writing) return;
    this.#writing = true;
    setImmediate(() => {
      this.#writing = false;
      this.#write(notes);
    });
  }

  #read(): Map<string, Note> {
    const { file, note } = this.#options;
    try {
      return new Map(Object.entries(z.record(z.string(), note).parse(JSON.parse(readFileSync(file, "utf8")))));
    } catch {
      return new Map();
    }
  }

  #write(notes: ReadonlyMap<string, Note>): void {
    const { file, log } = this.#options;
    try {
      makeStateFolder(dirname(file));
      writeStateFile(file, `${JSON.stringify(Object.fromEntries(notes), null, 2)}\n`);
    } catch (error) {
      log.warn({ err: error, file }, "what is known of models could not be noted; it is lost when the agent ends");
    }
  }
}

/** Remembers when this machine first saw each model whose runtime does not report a creation time. */
export class FirstSightings {
  readonly #notes: ModelNotes<number>;
  readonly #clock: Pick<Clock, "wall">;

  constructor({ clock, ...options }: Omit<NotesOptions<number>, "note"> & { readonly clock: Pick<Clock, "wall"> }) {
    this.#notes = new ModelNotes({ ...options, note: z.int().nonnegative() });
    this.#clock = clock;
  }

  secondsOf(model: string): number {
    const known = this.#notes.get(model);
    if (known !== undefined) return known;
    const now = Math.floor(this.#clock.wall() / 1_000);
    this.#notes.set(model, now);
    return now;
  }
}
