import { randomBytes } from "node:crypto";
import { z } from "zod";

/**
 * Identifies one boot of an agent. Epochs sort as text by the time of the boot. The random tail separates two boots of
 * the same millisecond. The newest epoch of a machine is the valid one.
 */
export const epoch = z.string().regex(/^\d{13}-[0-9a-f]{8}$/);

/** Returns an epoch for a boot at `wallMs`, newer than every epoch in `heard`. */
export function newEpoch(wallMs: number, heard: readonly string[] = []): string {
  const newest = Math.max(Math.floor(wallMs), ...heard.map((other) => Number(other.slice(0, 13)) + 1));
  return `${String(newest).padStart(13, "0")}-${randomBytes(4).toString("hex")}`;
}
