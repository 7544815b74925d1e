import type { BeatRow } from "#shared/protocol/frame-payload.ts";
import type { AgentJob } from "./agent-job.ts";

/** A row for every job, by the gateway that waits for it. `places` are those of the jobs that are queued. */
export function beatRows(
  jobs: Iterable<AgentJob>,
  places: ReadonlyMap<string, number>,
): ReadonlyMap<string, BeatRow[]> {
  const rows = new Map<string, BeatRow[]>();
  for (const { head, state, progress, frames, gateway } of jobs) {
    // The end of an answer may wait behind pieces that are ahead of the credit.
    const shown = state === "ended" && frames.endedAtMs === undefined ? "running" : state;
    const row: BeatRow = [head.id, shown, places.get(head.id) ?? 0, progress, frames.lastSequence, frames.credit];
    rows.getOrInsertComputed(gateway, () => []).push(row);
  }
  return rows;
}
