import { issueKey, type NewKey } from "#shared/records/issue-key.ts";
import { changeKey } from "#shared/records/change-key.ts";
import { Operator } from "../harness/operator.ts";
import type { UpProcess } from "../harness/start-trunkline.ts";
import type { KeysOfTheTest } from "./row.ts";

const dayMs = 86_400_000;

/** Makes the keys that cases send, some of them as if long ago. */
export async function makeKeys(up: UpProcess): Promise<KeysOfTheTest> {
  await using operator = await Operator.on({ stateDir: up.stateDir });
  const { keys, peppers } = operator.store;
  const make = async (terms: Partial<NewKey>, madeAgoMs = 0, then?: "revoked"): Promise<string> => {
    const clock = { wall: () => Date.now() - madeAgoMs };
    const means = { keys, peppers, clock, actor: { by: "the test" } };
    const { token, record } = await issueKey({ name: "test", scopes: ["*"], ttlMs: dayMs, ...terms }, means);
    if (then === "revoked") await changeKey(record.id, { action: "revoked" }, means);
    return token.reveal();
  };
  return {
    key: up.endpoint.key,
    admin: await make({ kind: "admin" }),
    expired: await make({}, 2 * dayMs),
    expiredLongAgo: await make({}, 101 * dayMs),
    revoked: await make({}, 0, "revoked"),
    revokedAndExpired: await make({}, 2 * dayMs, "revoked"),
    narrow: await make({ scopes: ["scripted:plain"] }),
    storing: await make({ storesResponses: true }),
  };
}
