import { describe, expect, onTestFinished, test } from "vitest";
import { checkKey } from "#shared/keys/check-key.ts";
import { issueKey } from "#shared/keys/issue-key.ts";
import type { KeyStore } from "#shared/keys/key-store.ts";
import { mintKeyToken } from "#shared/keys/key-token.ts";
import { pepperText } from "#shared/keys/pepper.ts";
import { systemClock } from "#shared/process/clock.ts";
import { until } from "../harness/until.ts";
import { withAnotherSecret } from "../harness/another-secret.ts";

/** Where one test keeps its keys; each opening is what another process would have. */
export interface KeyPlace {
  open(options: { readonly afterlifeMs?: number }): Promise<KeyStore>;
}

const pepper = pepperText.parse("a pepper that is long enough to be one");
const dayMs = 86_400_000;

export function keyStoreContract(adapter: string, makePlace: () => Promise<KeyPlace>): void {
  async function openPlace(): Promise<KeyPlace> {
    const place = await makePlace();
    return {
      open: async (options) => {
        const keys = await place.open(options);
        onTestFinished(() => keys.close());
        return keys;
      },
    };
  }
  const openStore = async (options = {}): Promise<KeyStore> => (await openPlace()).open(options);
  const issue = (keys: KeyStore, ttlMs = dayMs) =>
    issueKey({ name: "alice", scopes: ["llama3", "qwen*"], ttlMs }, { keys, pepper, clock: systemClock });
  const outcomeOf = async (keys: KeyStore, text: string): Promise<string> =>
    (await checkKey({ text, keys, pepper, nowMs: Date.now() })).outcome;

  describe(`keys in ${adapter}`, () => {
    test("an issued key is valid at once for every process, with all that was said of it", async () => {
      const place = await openPlace();
      const { token, record } = await issue(await place.open({}));
      const elsewhere = await place.open({});
      expect(await checkKey({ text: token.reveal(), keys: elsewhere, pepper, nowMs: Date.now() })).toEqual({
        outcome: "valid",
        record,
      });
      expect(await elsewhere.list()).toEqual([record]);
    });

    test("a key that was never issued is invalid, and so is another secret for one that was", async () => {
      const keys = await openStore();
      const { token } = await issue(keys);
      expect(await outcomeOf(keys, mintKeyToken().reveal())).toBe("invalid");
      expect(await outcomeOf(keys, withAnotherSecret(token))).toBe("invalid");
    });

    test("after its time a key is expired to its holder, and invalid to anybody else", async () => {
      const keys = await openStore();
      const { token, record } = await issue(keys, 1);
      await until(async () => (await outcomeOf(keys, token.reveal())) === "expired", { what: "the key to expire" });
      expect(await outcomeOf(keys, withAnotherSecret(token))).toBe("invalid");
      expect(await keys.list()).toEqual([record]);
    });

    test("when its record has lapsed, a key is still expired to its holder and invalid to anybody else", async () => {
      const keys = await openStore({ afterlifeMs: 0 });
      const { id, token } = await issue(keys, 50);
      await until(async () => (await keys.find(id)).kind === "tombstone", { what: "the record to lapse" });
      expect(await outcomeOf(keys, token.reveal())).toBe("expired");
      expect(await outcomeOf(keys, withAnotherSecret(token))).toBe("invalid");
      expect(await keys.list()).toEqual([]);
    });

    test("a revoked key is invalid at once, and stays so past its expiry and the end of its record", async () => {
      const place = await openPlace();
      const keys = await place.open({ afterlifeMs: 0 });
      const { id, token } = await issue(keys, 200);
      const elsewhere = await place.open({ afterlifeMs: 0 });
      expect(await elsewhere.revoke(id, Date.now())).toBe("revoked");
      expect(await outcomeOf(keys, token.reveal())).toBe("invalid");
      await until(async () => (await keys.find(id)).kind === "absent", { what: "the record to lapse" });
      expect(await outcomeOf(keys, token.reveal())).toBe("invalid");
    });

    test("a key can be revoked after its record has lapsed", async () => {
      const keys = await openStore({ afterlifeMs: 0 });
      const { id, token } = await issue(keys, 50);
      await until(async () => (await keys.find(id)).kind === "tombstone", { what: "the record to lapse" });
      expect(await keys.revoke(id, Date.now())).toBe("revoked");
      expect(await outcomeOf(keys, token.reveal())).toBe("invalid");
    });

    test("the first revocation counts, and an unknown key has none", async () => {
      const keys = await openStore();
      const { id, record } = await issue(keys);
      expect(await keys.revoke(id, 1_000)).toBe("revoked");
      expect(await keys.revoke(id, 2_000)).toBe("already_revoked");
      expect(await keys.revoke(mintKeyToken().id, 3_000)).toBe("unknown");
      expect(await keys.list()).toEqual([{ ...record, revokedAt: 1_000 }]);
    });

    test("a list holds every key once, the oldest first", async () => {
      const keys = await openStore();
      let wallMs = Date.now();
      const clock = { ...systemClock, wall: () => (wallMs += 1) };
      const issued = Array.from({ length: 600 }, () =>
        issueKey({ name: "n", scopes: ["*"], ttlMs: dayMs }, { keys, pepper, clock }),
      );
      const ids = (await Promise.all(issued)).map((each) => each.id);
      expect((await keys.list()).map((record) => record.id)).toEqual(ids);
    });

    test("of several processes with different peppers one claims the store, and only its pepper matches", async () => {
      const place = await openPlace();
      const peppers = ["A", "B", "C"].map((letter) => pepperText.parse(letter.repeat(32)).fingerprint);
      const claims = await Promise.all(
        peppers.map(async (fingerprint) => (await place.open({})).claimPepper(fingerprint)),
      );
      expect(claims.toSorted()).toEqual(["claimed", "mismatch", "mismatch"]);
      const later = await place.open({});
      const again = await Promise.all(peppers.map((fingerprint) => later.claimPepper(fingerprint)));
      expect(again).toEqual(claims.map((claim) => (claim === "claimed" ? "matches" : "mismatch")));
    });

    test("a store that was closed says that it is unavailable, and gives no verdict", async () => {
      const keys = await openStore();
      const { token } = await issue(keys);
      await keys.ready();
      await keys.close();
      await expect(outcomeOf(keys, token.reveal())).rejects.toMatchObject({ code: "backend_unavailable" });
      await expect(keys.ready()).rejects.toMatchObject({ code: "backend_unavailable" });
    });
  });
}
