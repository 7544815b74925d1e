import { join } from "node:path";
import { type Recording, readRecording, recordingOf, writeRecording } from "../harness/recording.ts";
import type { CodingClient } from "./coding-clients.ts";
import type { ClientRun } from "./run-client.ts";
import { type ScriptedStep, textsOf } from "./scripted-model.ts";

/** The project of a client in all recordings. */
export const recordedProject = "/scratch/project";

/** A line of Claude Code that the gateway looks for. It has a version and a hash of the conversation, and no prose. */
const billingLine = /x-anthropic-billing-header: [^"\\]*/g;

/** The recorded traffic of a client. `task` is the name of the task. */
export function recordingIn(client: CodingClient, task: string): Recording {
  return readRecording(pathOf(client, task));
}

/** Writes the requests of a run so far. `own` are the texts that stay, beside those of the script. */
export function record(
  client: CodingClient,
  task: string,
  of: { readonly run: ClientRun; readonly script: readonly ScriptedStep[]; readonly own: readonly string[] },
): void {
  const { exchanges } = of.run.recorder;
  const billed = exchanges.flatMap(({ body }) => JSON.stringify(body ?? "").match(billingLine) ?? []);
  const own = [...of.own, ...textsOf(of.script), ...new Set(billed)];
  const instead = { [of.run.folder]: join(recordedProject, "..") };
  writeRecording(pathOf(client, task), recordingOf(client, exchanges, { own, instead }));
}

function pathOf({ program }: CodingClient, task: string): string {
  return join(import.meta.dirname, "recordings", `${program}-${task}.jsonl`);
}
