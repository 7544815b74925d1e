import type { Log } from "#shared/process/log.ts";
import type { AgentConfig } from "./config.ts";
import { ModelNotes } from "./models/model-notes.ts";
import { type Proof, proof } from "./models/seam-prover.ts";

/** Opens the proofs of a machine: the kinds of begun answers that its models go on with. */
export function proofsOf({ proofsFile: file }: AgentConfig, log: Pick<Log, "warn">): ModelNotes<Proof> {
  return new ModelNotes({ file, note: proof, log });
}
