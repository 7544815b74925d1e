import type { Peppers } from "#shared/keys/pepper.ts";
import { seal, sealBytes, unseal } from "#shared/keys/seal.ts";
import { epoch as epochText, machineName } from "#shared/protocol/identifiers.ts";
import { limits } from "#shared/protocol/limits.ts";
import { placedSubject } from "#shared/protocol/subjects.ts";
import type { PlacedLoad } from "./placed-loads.ts";
import type { PlacedPrompt, Placements } from "./placement-memory.ts";

/** A message of placements. Large news take several messages, numbered from 0. */
export interface PlacementsPart extends Placements {
  /** Time of the message on the site's clock. Strictly increasing for each gateway. */
  readonly sentAtMs: number;
  readonly part: number;
  readonly isLast: boolean;
}

const version = 1;
/** Time, number and flag of a message. */
const headBytes = 8 + 1 + 1;
/** The bytes of a message without records: its version, its seal and its head. */
const emptyBytes = 1 + sealBytes + headBytes;
const loadRecord = 1;
const promptRecord = 2;
const bytesOfInt = 4;
const uint32Max = 0xffff_ffff;

type PlacementsRecord = PlacedLoad | PlacedPrompt;

/** The content of the messages that news take, and how many prompts found no room in them. */
export interface CutPlacements {
  readonly parts: readonly Placements[];
  readonly dropped: number;
}

/** Cuts news into the parts that a message holds. Loads come first; what is beyond the last message is left out. */
export function cutPlacements({ loads, prompts }: Placements): CutPlacements {
  const parts: { loads: PlacedLoad[]; prompts: PlacedPrompt[]; bytes: number }[] = [];
  let dropped = 0;
  let last = { loads: [] as PlacedLoad[], prompts: [] as PlacedPrompt[], bytes: emptyBytes };
  parts.push(last);
  for (const record of [...loads, ...prompts.map(cutBlocks)]) {
    const bytes = recordBytes(record);
    if (last.bytes + bytes > limits.placementsBytesMax) {
      if (parts.length === limits.placementsMessagesMax) {
        dropped += 1;
        continue;
      }
      last = { loads: [], prompts: [], bytes: emptyBytes };
      parts.push(last);
    }
    last.bytes += bytes;
    if ("blocks" in record) last.prompts.push(record);
    else last.loads.push(record);
  }
  return { parts, dropped };
}

function cutBlocks(prompt: PlacedPrompt): PlacedPrompt {
  if (prompt.blocks.length <= limits.placedBlocksMax) return prompt;
  return { ...prompt, blocks: prompt.blocks.subarray(0, limits.placedBlocksMax) };
}

function recordBytes(record: PlacementsRecord): number {
  const names = 1 + 1 + record.machine.length + 1 + record.epoch.length;
  return names + 2 * bytesOfInt + ("blocks" in record ? record.blocks.byteLength : 0);
}

/** Seals a message, so that only gateways of this site can read it, and nobody else can make one. */
export function sealPlacements(
  part: PlacementsPart,
  { gateway, peppers }: { readonly gateway: string; readonly peppers: Pick<Peppers, "placementsKeys"> },
): Buffer {
  const [key] = peppers.placementsKeys(gateway);
  return Buffer.concat([Buffer.of(version), seal(encode(part), key, nameOf(gateway))]);
}

export type OpenedPlacements =
  | {
      readonly outcome: "opened";
      readonly part: PlacementsPart;
      /** False if it was sealed under the pepper that is being replaced, with which its prompts were hashed too. */
      readonly isCurrent: boolean;
    }
  | { readonly outcome: "other-version" | "other-pepper" | "malformed" };

/** Opens a message of a gateway with the current pepper, or with the one that replaces it or is replaced. */
export function openPlacements(
  data: Uint8Array,
  { gateway, peppers }: { readonly gateway: string; readonly peppers: Pick<Peppers, "placementsKeys"> },
): OpenedPlacements {
  if (data.byteLength < emptyBytes || data.byteLength > limits.placementsBytesMax) {
    return { outcome: "malformed" };
  }
  if (data[0] !== version) return { outcome: "other-version" };
  const opened = unseal(data.subarray(1), peppers.placementsKeys(gateway), nameOf(gateway));
  if (opened === undefined) return { outcome: "other-pepper" };
  const part = decode(opened.bytes);
  return part === undefined ? { outcome: "malformed" } : { outcome: "opened", part, isCurrent: opened.at === 0 };
}

/** Binds a message to its version, its subject and thereby its gateway. */
function nameOf(gateway: string): string {
  return `${version} ${placedSubject(gateway)}`;
}

function encode({ sentAtMs, part, isLast, loads, prompts }: PlacementsPart): Buffer {
  const records = [...loads, ...prompts];
  const bytes = Buffer.allocUnsafe(records.reduce((sum, record) => sum + recordBytes(record), headBytes));
  let at = bytes.writeDoubleLE(sentAtMs);
  at = bytes.writeUInt8(part, at);
  at = bytes.writeUInt8(isLast ? 1 : 0, at);
  for (const record of records) {
    at = bytes.writeUInt8("blocks" in record ? promptRecord : loadRecord, at);
    for (const name of [record.machine, record.epoch]) {
      at = bytes.writeUInt8(name.length, at);
      at += bytes.write(name, at, "latin1");
    }
    if ("blocks" in record) {
      const { salt, blocks } = record;
      at = bytes.writeInt32LE(salt, at);
      at = bytes.writeUInt32LE(blocks.length, at);
      bytes.set(new Uint8Array(blocks.buffer, blocks.byteOffset, blocks.byteLength), at);
      at += blocks.byteLength;
    } else {
      at = bytes.writeUInt32LE(bounded(record.jobs), at);
      at = bytes.writeUInt32LE(bounded(record.backlogTokens), at);
    }
  }
  return bytes;
}

function bounded(count: number): number {
  return Math.min(uint32Max, Math.max(0, Math.round(count)));
}

/** Returns undefined for anything that `encode` does not write: a gateway of another build may have a bug. */
function decode(bytes: Buffer): PlacementsPart | undefined {
  try {
    return read(bytes);
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/** Throws a `RangeError` when the bytes end too early. */
function read(bytes: Buffer): PlacementsPart | undefined {
  const loads: PlacedLoad[] = [];
  const prompts: PlacedPrompt[] = [];
  const [sentAtMs, part, flag] = [bytes.readDoubleLE(0), bytes.readUInt8(8), bytes.readUInt8(9)];
  if (!Number.isFinite(sentAtMs) || part >= limits.placementsMessagesMax || flag > 1) return undefined;
  let at = headBytes;
  const name = (): string => {
    const from = at + 1;
    at = from + bytes.readUInt8(at);
    return bytes.toString("latin1", from, at);
  };
  while (at < bytes.length) {
    const kind = bytes.readUInt8(at++);
    const [machine, epoch] = [name(), name()];
    if (!machineName.safeParse(machine).success || !epochText.safeParse(epoch).success) return undefined;
    const [one, other] = [at, at + bytesOfInt];
    at += 2 * bytesOfInt;
    if (kind === loadRecord) {
      loads.push({ machine, epoch, jobs: bytes.readUInt32LE(one), backlogTokens: bytes.readUInt32LE(other) });
    } else if (kind === promptRecord) {
      const count = bytes.readUInt32LE(other);
      if (count > limits.placedBlocksMax || at + count * bytesOfInt > bytes.length) return undefined;
      // A copy of its own: the bytes of a message need not begin where an int32 may.
      const blocks = new Int32Array(count);
      new Uint8Array(blocks.buffer).set(bytes.subarray(at, at + blocks.byteLength));
      prompts.push({ machine, epoch, salt: bytes.readInt32LE(one), blocks });
      at += blocks.byteLength;
    } else return undefined;
  }
  return { sentAtMs, part, isLast: flag === 1, loads, prompts };
}
