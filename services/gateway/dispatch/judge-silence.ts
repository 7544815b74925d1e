import type { Timing } from "#shared/protocol/timing.ts";

interface Silence {
  readonly nowMs: number;
  /** When the job was last heard of, by any frame or by its row in a beat. */
  readonly heardAtMs: number;
  /** Whether the gateway's own connection is up, and since when it is as it is. */
  readonly connected: boolean;
  readonly connectionSinceMs: number;
}

export type SilenceVerdict = "wait" | "probe" | "lost" | "cut-off";

/**
 * What a job's silence means. It ages only while the gateway's own connection is up, and starts anew when that comes
 * back: a machine is not blamed for what the gateway could not hear.
 */
export function judgeSilence(silence: Silence, timing: Timing): SilenceVerdict {
  const { nowMs, heardAtMs, connected, connectionSinceMs } = silence;
  if (!connected) return nowMs - connectionSinceMs > timing.cutOffAfterMs ? "cut-off" : "wait";
  const silentMs = nowMs - Math.max(heardAtMs, connectionSinceMs);
  if (silentMs > timing.lostAfterMs) return "lost";
  return silentMs > timing.probeAfterMs ? "probe" : "wait";
}
