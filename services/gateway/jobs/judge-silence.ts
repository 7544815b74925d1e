import type { Timing } from "#shared/protocol/timing.ts";

interface Silence {
  readonly nowMs: number;
  /** Time of the job's latest frame, or of its latest row in a beat. */
  readonly heardAtMs: number;
  /** True if the gateway's own connection is up. `connectionSinceMs` is when it last came up or went down. */
  readonly connected: boolean;
  readonly connectionSinceMs: number;
}

export type SilenceVerdict = "wait" | "probe" | "lost" | "cut-off";

/**
 * Judges the silence of a job. Silence counts only while the gateway's own connection is up, and starts anew when the
 * connection comes back. A machine is not blamed for messages that the gateway could not receive.
 */
export function judgeSilence(silence: Silence, timing: Timing): SilenceVerdict {
  const { nowMs, heardAtMs, connected, connectionSinceMs } = silence;
  if (!connected) return nowMs - connectionSinceMs > timing.cutOffAfterMs ? "cut-off" : "wait";
  const silentMs = nowMs - Math.max(heardAtMs, connectionSinceMs);
  if (silentMs > timing.lostAfterMs) return "lost";
  return silentMs > timing.probeAfterMs ? "probe" : "wait";
}
