import { changeKey, replicatedIn } from "#shared/keys/change-key.ts";
import type { KeyChange } from "#shared/keys/key-change.ts";
import type { KeyId } from "#shared/keys/key-token.ts";
import { showKey, type ShownKey } from "#shared/keys/shown-key.ts";
import type { GivenJson } from "../json-option.ts";
import type { Surroundings } from "../surroundings.ts";
import { withKeyStore } from "../with-key-store.ts";
import { actor } from "./actor.ts";
import { changedRecord, noSuchKey, replicationLine } from "./changed-record.ts";

/** Changes a key and shows its new state: with `tell` to a person, as JSON with all fields to a program. */
export async function changeAndTell(
  wish: { readonly id: KeyId; readonly change: KeyChange } & GivenJson,
  surroundings: Surroundings,
  tell: (shown: ShownKey, outcome: "changed" | "unchanged") => string,
): Promise<void> {
  const { id, change } = wish;
  const { stdout, stderr } = surroundings;
  await withKeyStore(surroundings, wish, async ({ keys, clock, place }) => {
    const changed = await changeKey(id, change, { keys, clock, actor: actor() });
    const record = changedRecord(changed, { id, place });
    if (record === undefined) throw noSuchKey(id, place);
    const outcome = changed.outcome === "unchanged" ? "unchanged" : "changed";
    const shown = showKey(record, clock.wall());
    stdout.write(
      wish.json ? `${JSON.stringify({ ...shown, outcome, ...replicatedIn(changed) })}\n` : tell(shown, outcome),
    );
    stderr.write(replicationLine(changed));
  });
}
