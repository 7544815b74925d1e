import type { KeyRecord } from "#shared/records/key-record.ts";
import { mintKeyToken } from "#shared/keys/key-token.ts";
import { pepperText } from "#shared/keys/pepper.ts";
import type { RouteTarget } from "#shared/records/route-record.ts";
import { RouteTable } from "../../../services/gateway/fleet/route-records.ts";

const pepper = pepperText.parse("a pepper that is long enough to be one");
const token = mintKeyToken();
/** A key that may use every model of the site, or as told. */
export const key = (terms: Partial<KeyRecord> = {}): KeyRecord => ({
  id: token.id,
  version: 0,
  kind: "model",
  name: "alice",
  digest: token.digest(pepper),
  pepper: pepper.fingerprint,
  scopes: ["*"],
  createdAt: 0,
  expiresAt: 1,
  ...terms,
});
/** Routes by name, each with its targets; a text is a model alone. The machines m1 and m3 have the label `fast`. */
export const tableOf = (routes: Readonly<Record<string, readonly (string | RouteTarget)[]>>): RouteTable =>
  new RouteTable(
    Object.entries(routes).map(([name, targets]) => ({
      name,
      version: 1,
      targets: targets.map((target) => (typeof target === "string" ? { model: target } : target)),
      createdAt: 0,
      changedAt: 0,
    })),
    (label) => (label === "fast" ? ["m1", "m3"] : []),
  );
