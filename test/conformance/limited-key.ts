import type { UpProcess } from "../harness/start-trunkline.ts";
import { trunkline } from "../harness/trunkline-command.ts";

/** A key that was issued with these flags. */
export async function limitedKey({ stateDir }: UpProcess, ...flags: string[]): Promise<string> {
  const issue = ["keys", "issue", "--name", "limited", ...flags, "--json"];
  const { exitCode, stdout, stderr } = await trunkline(issue, { TRUNKLINE_STATE_DIR: stateDir });
  if (exitCode !== 0) throw new Error(`keys issue ended with ${exitCode}: ${stderr}`);
  return (JSON.parse(stdout) as { key: string }).key;
}
