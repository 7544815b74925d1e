import { WorkThread } from "#shared/process/work-thread.ts";
import type { ChatBody, CompleteBody, EmbedBody } from "#shared/protocol/job-bodies.ts";
import { limits } from "#shared/protocol/limits.ts";

export interface JobBodies {
  readonly chat: ChatBody;
  readonly complete: CompleteBody;
  readonly embed: EmbedBody;
}

/** An order to the thread: a job's body to read, or a runtime's request to write. */
export type JsonOrder = { readonly kind: keyof JobBodies; readonly bytes: Uint8Array } | { readonly written: unknown };

const thread = new WorkThread<JsonOrder, unknown>(new URL("./json-thread.ts", import.meta.url));

/** Reads a large job's body beside the event loop, so that other answers go on. */
export async function readLargeBody<Kind extends keyof JobBodies>(
  kind: Kind,
  bytes: Uint8Array,
): Promise<JobBodies[Kind]> {
  return (await thread.run({ kind, bytes }, bytes)) as JobBodies[Kind];
}

/** Writes a large value as JSON beside the event loop. */
export async function writeLargeJson(value: unknown): Promise<Uint8Array> {
  return (await thread.run({ written: value }, new Uint8Array())) as Uint8Array;
}

/** Returns true if reading or writing a value of this many bytes would hold the event loop for long. */
export function isLarge(bytes: number): boolean {
  return bytes > limits.partBytes;
}

/** Returns true if the texts and fields of a value are large together. Counts only until they are. */
export function isLargeValue(value: unknown): boolean {
  return isLarge(sizeOf(value));
}

function sizeOf(value: unknown): number {
  if (typeof value === "string") return value.length;
  if (typeof value !== "object" || value === null) return 1;
  let size = 1;
  for (const field of Object.values(value)) {
    size += sizeOf(field);
    if (isLarge(size)) break;
  }
  return size;
}
