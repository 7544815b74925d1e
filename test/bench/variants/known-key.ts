import { hash, randomBytes } from "node:crypto";

/** A key for one start of those variants that know no more of keys than a digest. */
export function makeKey(): { readonly headers: Readonly<Record<string, string>>; readonly digest: string } {
  const key = `bench_${randomBytes(24).toString("base64url")}`;
  return { headers: { authorization: `Bearer ${key}` }, digest: hash("sha256", key) };
}

/** What checking a key takes at the least: its digest, and whether anybody has that one. */
export class KnownKeys {
  readonly #holders: ReadonlyMap<string, string>;

  constructor(digest: string) {
    this.#holders = new Map([[digest, "bench"]]);
  }

  holder(authorization: string | undefined): string | undefined {
    if (authorization === undefined || !authorization.startsWith("Bearer ")) return undefined;
    return this.#holders.get(hash("sha256", authorization.slice("Bearer ".length)));
  }
}
