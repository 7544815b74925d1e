import { parseKeyToken } from "#shared/keys/key-token.ts";
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { checkKey } from "#shared/keys/check-key.ts";
import { issueKey } from "#shared/keys/issue-key.ts";
import type { OpenedKeyStore } from "#shared/keys/open-key-store.ts";
import { makeStateFolder } from "#shared/keys/state-folder.ts";
import type { Clock } from "#shared/process/clock.ts";

const dayMs = 86_400_000;
const ttlMs = 365 * dayMs;
/** A key with less than this left is replaced at the next start, so that none runs out while it is in use. */
const renewBelowMs = 90 * dayMs;

/**
 * The key that `trunkline up` shows: made at the first start and kept in the state folder, for its owner alone, until
 * it is revoked or comes near its end.
 */
export async function ownKey(options: {
  readonly stateDir: string;
  readonly store: OpenedKeyStore;
  readonly clock: Clock;
}): Promise<string> {
  const { stateDir, store, clock } = options;
  makeStateFolder(stateDir);
  const file = join(stateDir, "key");
  const { keys, peppers } = store;
  const kept = readKept(file);
  if (kept !== undefined) {
    const parsed = parseKeyToken(kept);
    const verdict =
      parsed.outcome === "parsed"
        ? await checkKey({ token: parsed.token, keys, peppers, nowMs: clock.wall() })
        : undefined;
    if (verdict?.outcome === "valid" && verdict.proven.record.expiresAt - clock.wall() > renewBelowMs) return kept;
  }
  const { token } = await issueKey(
    { name: "trunkline up", scopes: ["*"], ttlMs },
    { keys, peppers, clock, actor: { by: "up" } },
  );
  const text = token.reveal();
  writeFileSync(`${file}.new`, `${text}\n`, { mode: 0o600 });
  renameSync(`${file}.new`, file);
  return text;
}

function readKept(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8").trim();
  } catch {
    return undefined;
  }
}
