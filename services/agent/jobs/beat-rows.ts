import type { BeatRow } from "#shared/protocol/frame-payload.ts";
import type { AgentJob } from "./agent-job.ts";

/** A row for every job, by the gateway that waits for it. `places` are those of the jobs that are queued. */
export function beatRows(
  jobs: Iterable<AgentJob>,
  places: ReadonlyMap<string, number>,
): ReadonlyMap<string, BeatRow[]> {
  const rows = new Map<string, BeatRow[]>();
  for (const { head, state, progress, frames, gateway } of jobs) {
    const row: BeatRow = [head.id, state, places.get(head.id) ?? 0, progress, frames.lastSequence, 0];
    rows.getOrInsertComputed(gateway, () => []).push(row);
  }
  return rows;
}
