import type { BeatRow } from "#shared/protocol/frame-payload.ts";
import type { AgentJob } from "./agent-job.ts";

/** Returns a beat row for every job, by the gateway that waits for it. `places` are those of the queued jobs. */
export function beatRows(
  jobs: Iterable<AgentJob>,
  places: ReadonlyMap<string, number>,
): ReadonlyMap<string, BeatRow[]> {
  const rows = new Map<string, BeatRow[]>();
  for (const { head, state, outputTokens, frames, gateway } of jobs) {
    // The end of an answer may wait behind bytes that are ahead of the credit.
    const shown = state === "ended" && frames.endedAtMs === undefined ? "running" : state;
    const row: BeatRow = [head.id, shown, places.get(head.id) ?? 0, outputTokens, frames.lastSequence, frames.credit];
    rows.getOrInsertComputed(gateway, () => []).push(row);
  }
  return rows;
}
