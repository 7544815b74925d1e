import { Buffer } from "node:buffer";
import { chmodSync, mkdirSync, readFileSync, realpathSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { z } from "zod";
import { reasonOf } from "#shared/fault/fault.ts";
import { keyId } from "#shared/keys/key-token.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import { replace } from "#shared/process/state-folder.ts";
import { codeOf } from "../terminal/command-line.ts";
import type { Places } from "../site/places.ts";
import type { PlannedFile } from "./plan-connection.ts";

const bytes = z.base64().transform((text) => Buffer.from(text, "base64"));

/** The record of one connected client: all that an undo needs. */
const connection = z.object({
  /** The key that was issued for the client, and the state folder or operations port that issued it. */
  key: z.object({ id: keyId, place: z.string() }).optional(),
  files: z.array(
    z.object({
      file: z.string(),
      /** The bytes and the mode of the file before; null when there was none. */
      before: bytes.nullable(),
      mode: z.int().nullable(),
      after: bytes,
    }),
  ),
});
export type Connection = z.output<typeof connection>;
export type ConnectedFile = Connection["files"][number];

const onlyOwner = 0o600;

/**
 * Writes the files of connected clients, keeps what they were before, and restores it. The records hold secrets of
 * other programs, so only their owner may read them.
 */
export class Connections {
  readonly #folder: string;

  constructor({ home, platform, environment }: Places) {
    const { XDG_STATE_HOME, LOCALAPPDATA } = environment;
    const ofPlatform =
      platform === "win32"
        ? LOCALAPPDATA || join(home, "AppData", "Local")
        : XDG_STATE_HOME || join(home, ".local", "state");
    this.#folder = join(ofPlatform, "trunkline", "connections");
  }

  /** Returns the record of a client; undefined when the client is not connected. */
  find(client: string): Connection | undefined {
    const file = this.#recordOf(client);
    const text = readBytes(file)?.toString();
    if (text === undefined) return undefined;
    try {
      return connection.parse(JSON.parse(text));
    } catch (error) {
      throw new StartFailure(exitCodes.config, `${file} is no record of a connection: move it away.`, { cause: error });
    }
  }

  /**
   * Writes the planned files. The record comes first: an undo works after a crash between two files, too. A file of the
   * `earlier` connection was planned from what it was before that one, and is restored when the plan leaves it out. A file that cannot be
   * written leaves the client as it was before.
   */
  write(
    client: string,
    planned: readonly PlannedFile[],
    { key, earlier }: Pick<Connection, "key"> & { readonly earlier: Connection | undefined },
  ): void {
    const known = new Map(earlier?.files.map((each) => [each.file, each]));
    const files = planned.map(({ file, before, after }) => ({
      file,
      before: before === undefined ? null : Buffer.from(before),
      mode: (known.get(file) ?? statSync(file, { throwIfNoEntry: false }))?.mode ?? null,
      after: Buffer.from(after),
    }));
    const text = JSON.stringify({ key, files: files.map(inBase64) });
    writeWhole(this.#recordOf(client), Buffer.from(text), onlyOwner);
    try {
      for (const [at, { file, mode, after }] of files.entries()) {
        known.delete(file);
        writeWhole(file, after, planned[at]?.holdsKey ? onlyOwner : mode);
      }
      for (const left of known.values()) restore(left);
    } catch (error) {
      this.undo(client, { files });
      throw error;
    }
  }

  /** Restores the files of a client byte for byte and removes its record. */
  undo(client: string, { files }: Pick<Connection, "files">): void {
    for (const each of files) restore(each);
    rmSync(this.#recordOf(client));
  }

  #recordOf(client: string): string {
    return join(this.#folder, `${client}.json`);
  }
}

/** Returns the text of a file now; undefined when there is none. Refuses a file that is no UTF-8 text. */
export function readText(file: string): string | undefined {
  const found = readBytes(file);
  if (found === undefined) return undefined;
  const text = found.toString();
  if (Buffer.from(text).equals(found)) return text;
  throw new StartFailure(exitCodes.config, `${file} is no UTF-8 text: save it as one first.`);
}

/** Returns true if a file is neither as it was before nor as the connection wrote it. */
export function isChanged({ file, before, after }: ConnectedFile): boolean {
  const now = readBytes(file);
  if (now === undefined) return before !== null;
  return !now.equals(after) && !(before !== null && now.equals(before));
}

function inBase64({ before, after, ...rest }: ConnectedFile): object {
  return { ...rest, before: before?.toString("base64") ?? null, after: after.toString("base64") };
}

function restore({ file, before, mode }: ConnectedFile): void {
  if (before !== null) writeWhole(file, before, mode);
  else if (readBytes(file) !== undefined) rmSync(file);
}

function readBytes(file: string): Buffer | undefined {
  try {
    return readFileSync(file);
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes(codeOf(error))) return undefined;
    throw new StartFailure(exitCodes.config, `${file} cannot be read (${reasonOf(error)}).`, { cause: error });
  }
}

/**
 * Writes a file so that it appears whole or keeps its old bytes. A symbolic link stays one: its target is written.
 * `mode` null is the one of a new file.
 */
function writeWhole(file: string, content: Buffer, mode: number | null): void {
  try {
    mkdirSync(dirname(file), { recursive: true });
    const target = statSync(file, { throwIfNoEntry: false }) === undefined ? file : realpathSync(file);
    const draft = `${target}.trunkline`;
    rmSync(draft, { force: true });
    try {
      writeFileSync(draft, content, { flag: "wx", mode: mode === null ? 0o666 : mode & 0o777, flush: true });
      if (mode !== null) chmodSync(draft, mode & 0o777);
      replace(target, draft);
    } finally {
      rmSync(draft, { force: true });
    }
  } catch (error) {
    throw new StartFailure(exitCodes.cannotCreate, `${file} cannot be written (${reasonOf(error)}).`, { cause: error });
  }
}
