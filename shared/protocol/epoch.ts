import { randomBytes } from "node:crypto";
import { z } from "zod";

/**
 * One boot of an agent. Epochs sort as text by the time of the boot, and the random tail keeps two boots of the same
 * millisecond apart. The newest epoch of a machine is the machine.
 */
export const epoch = z.string().regex(/^\d{13}-[0-9a-f]{8}$/);

/** An epoch for a boot at `wallMs`, newer than every epoch in `heard`. */
export function newEpoch(wallMs: number, heard: readonly string[] = []): string {
  const newest = Math.max(Math.floor(wallMs), ...heard.map((other) => Number(other.slice(0, 13)) + 1));
  return `${String(newest).padStart(13, "0")}-${randomBytes(4).toString("hex")}`;
}
