import { checkKey } from "#shared/records/judge-key.ts";
import { describe, expect, onTestFinished, test } from "vitest";
import type { AuditEntry } from "#shared/records/audit-entry.ts";
import { changeKey, type KeyChange, type KeyChanged, rotateKey } from "#shared/records/change-key.ts";
import { replacedSecretsMax, type KeyRecord } from "#shared/records/key-record.ts";
import { issueKey, type IssuedKey, type NewKey } from "#shared/records/issue-key.ts";
import type { KeyStore, LogQuery, UnreadRecord } from "#shared/records/key-store.ts";
import { sinceVersion } from "#shared/records/site-gateways.ts";
import { mintKeyToken, parseKeyToken, type KeyId, type KeyToken } from "#shared/keys/key-token.ts";
import { Peppers, pepperText } from "#shared/keys/pepper.ts";
import { systemClock } from "#shared/process/clock.ts";
import { withAnotherSecret } from "../harness/another-secret.ts";
import { until } from "../harness/until.ts";
import { printOf } from "../../services/gateway/operations/open-id.ts";
import { keyOfPerson } from "../../services/gateway/operations/person-key.ts";
import { meansOf, pepper, peppers } from "./key-store-means.ts";
import type { KeyPlace } from "./key-store-place.ts";

const otherPepper = pepperText.parse("another pepper, long enough to be one");
const dayMs = 86_400_000;
const unavailable = { code: "backend_unavailable" };

const issue = (keys: KeyStore, terms: Partial<NewKey> = {}): Promise<IssuedKey> =>
  issueKey({ name: "alice", scopes: ["llama3", "qwen*"], ttlMs: dayMs, ...terms }, meansOf(keys));
const change = (keys: KeyStore, id: KeyId, wish: KeyChange): Promise<KeyChanged> => changeKey(id, wish, meansOf(keys));

async function rotate(keys: KeyStore, id: KeyId, graceMs: number): Promise<KeyToken> {
  const { token } = await rotateKey({ id, graceMs }, meansOf(keys));
  if (token === undefined) throw new Error("the key was not rotated");
  return token;
}

async function outcomeOf(keys: KeyStore, token: KeyToken, by: { nowMs?: number; peppers?: Peppers } = {}) {
  return (await checkKey({ token, keys, peppers: by.peppers ?? peppers, nowMs: by.nowMs ?? Date.now() })).outcome;
}

/** What somebody who knows the format can make of a key that is not theirs. */
function guessed(token: KeyToken): KeyToken {
  const parsed = parseKeyToken(withAnotherSecret(token));
  if (parsed.outcome !== "parsed") throw new Error("the guess has no key's form");
  return parsed.token;
}

function entryOn(record: KeyRecord, action: AuditEntry["action"]): AuditEntry {
  return { at: Date.now(), by: "somebody else", action, key: record.id, name: record.name };
}

const untilLapsed = (keys: KeyStore, id: KeyId) =>
  until(async () => (await keys.find(id)).kind !== "record", { what: "the record to lapse" });

export function keyStoreContract(adapter: string, makePlace: () => Promise<KeyPlace>): void {
  const openStore = async (options = {}): Promise<KeyStore> => (await makePlace()).open(options);

  describe(`keys in ${adapter}`, () => {
    test("an issued key is valid at once for every process, with all that was said of it", async () => {
      const place = await makePlace();
      const limits = { requestsPerMinute: 60, concurrency: 2, budget: { tokens: 1_000, per: "month" } } as const;
      const { token, record } = await issue(await place.open(), { machines: ["attic"], limits });
      const elsewhere = await place.open();
      expect(await checkKey({ token, keys: elsewhere, peppers, nowMs: Date.now() })).toEqual({
        outcome: "valid",
        proven: { record, secretUntil: Infinity },
      });
      expect(await elsewhere.list()).toEqual([record]);
    });

    test("a key that was never issued is invalid, and so is another secret for one that was", async () => {
      const keys = await openStore();
      const { token } = await issue(keys);
      expect(await outcomeOf(keys, mintKeyToken())).toBe("invalid");
      expect(await outcomeOf(keys, guessed(token))).toBe("invalid");
    });

    test("after its time a key is expired to its holder, and invalid to anybody else", async () => {
      const keys = await openStore();
      const { token, record } = await issue(keys, { ttlMs: 1 });
      await until(async () => (await outcomeOf(keys, token)) === "expired", { what: "the key to expire" });
      expect(await outcomeOf(keys, guessed(token))).toBe("invalid");
      expect(await keys.list()).toEqual([record]);
    });

    test("when its record has lapsed, a key is still expired to its holder and invalid to anybody else", async () => {
      const keys = await openStore({ afterlifeMs: 0 });
      const { token } = await issue(keys, { ttlMs: 50 });
      await untilLapsed(keys, token.id);
      expect(await outcomeOf(keys, token)).toBe("expired");
      expect(await outcomeOf(keys, guessed(token))).toBe("invalid");
      expect(await keys.list()).toEqual([]);
    });

    test("every change is kept as it was made, for every process", async () => {
      const place = await makePlace();
      const [keys, elsewhere] = [await place.open(), await place.open()];
      const { token } = await issue(keys);
      const { id } = token;
      const secret = { digest: mintKeyToken("model", id).digest(pepper), pepper: pepper.fingerprint };
      const wishes: KeyChange[] = [
        { action: "extended", ttlMs: 2 * dayMs },
        { action: "rotated", secret, graceMs: dayMs },
        { action: "changed", terms: { name: "bob", scopes: ["*"], machines: ["attic"], limits: { concurrency: 1 } } },
        { action: "disabled" },
        { action: "changed", terms: { machines: null, limits: { concurrency: null } } },
        { action: "enabled" },
        { action: "revoked" },
      ];
      for (const wish of wishes) {
        const changed = await change(keys, id, wish);
        if (changed.outcome !== "changed") throw new Error(`${wish.action}: ${changed.outcome}`);
        expect(await elsewhere.find(id)).toEqual({ kind: "record", record: changed.record });
      }
      const trail = await elsewhere.log({ entriesMax: 100 });
      expect(trail.map(({ action }) => action)).toEqual(["issued", ...wishes.map(({ action }) => action)]);
    });

    test("every change is made exactly once when 20 processes change one key at once", async () => {
      const place = await makePlace();
      const processes = await Promise.all(Array.from({ length: 20 }, () => place.open()));
      const [keys] = processes;
      if (keys === undefined) throw new Error("no process");
      const { id } = (await issue(keys, { name: "key of 20" })).token;
      const changed = await Promise.all(
        processes.map((each, at) => change(each, id, { action: "changed", terms: { name: `name ${at}` } })),
      );
      const versions = changed.map((each) => (each.outcome === "changed" ? each.record.version : each.outcome));
      expect(versions.toSorted((one, other) => Number(one) - Number(other))).toEqual(processes.map((_, at) => at + 1));
      const trail = await keys.log({ entriesMax: 100, keys: [id] });
      const inTheirOrder = changed.flatMap((each) => (each.outcome === "changed" ? [each.record] : []));
      inTheirOrder.sort((one, other) => one.version - other.version);
      expect(trail.map(({ name }) => name)).toEqual(["key of 20", ...inTheirOrder.map(({ name }) => name)]);
    });

    test("a change on a record that somebody else changed meanwhile is not made, and not noted", async () => {
      const keys = await openStore();
      const { record } = await issue(keys);
      const first = { ...record, version: 1, name: "first" };
      expect(await keys.replace(first, entryOn(first, "changed"))).toBe("written");
      const second = { ...record, version: 1, name: "second" };
      expect(await keys.replace(second, entryOn(second, "changed"))).toBe("conflict");
      const never = { ...record, id: mintKeyToken().id, version: 1 };
      expect(await keys.replace(never, entryOn(never, "changed"))).toBe("conflict");
      expect(await keys.list()).toEqual([first]);
      expect((await keys.log({ entriesMax: 10 })).map(({ name }) => name)).toEqual(["alice", "first"]);
    });

    test("a change on a record that lapsed meanwhile brings nothing back", async () => {
      const keys = await openStore({ afterlifeMs: 0 });
      const { token, record } = await issue(keys, { ttlMs: 50 });
      await untilLapsed(keys, token.id);
      const longer = { ...record, version: 1, expiresAt: Date.now() + dayMs };
      expect(await keys.replace(longer, entryOn(longer, "extended"))).toBe("conflict");
      expect((await keys.find(token.id)).kind).toBe("tombstone");
      expect(await keys.list()).toEqual([]);
      expect(await keys.log({ entriesMax: 10 })).toHaveLength(1);
    });

    test("an old secret is good through its grace, then replaced, and invalid only when it is forgotten", async () => {
      const place = await makePlace();
      const [keys, elsewhere] = [await place.open(), await place.open()];
      const { token: first } = await issue(keys, { ttlMs: 90 * dayMs });
      const second = await rotate(keys, first.id, dayMs);
      expect(await outcomeOf(elsewhere, first)).toBe("valid");
      expect(await outcomeOf(elsewhere, first, { nowMs: Date.now() + dayMs })).toBe("replaced");
      expect(await outcomeOf(elsewhere, second, { nowMs: Date.now() + dayMs })).toBe("valid");
      expect(await outcomeOf(elsewhere, guessed(first))).toBe("invalid");

      for (let rotations = 2; rotations <= replacedSecretsMax; rotations += 1) await rotate(keys, first.id, 1);
      expect(await outcomeOf(elsewhere, first, { nowMs: Date.now() + dayMs })).toBe("replaced");
      const ninth = await rotate(keys, first.id, 1);
      expect(await outcomeOf(elsewhere, first)).toBe("invalid");
      expect(await outcomeOf(elsewhere, second, { nowMs: Date.now() + dayMs })).toBe("replaced");
      expect(await outcomeOf(elsewhere, ninth)).toBe("valid");
    });

    test("a disabled key is disabled to its holder, and valid again when it was enabled", async () => {
      const place = await makePlace();
      const [keys, elsewhere] = [await place.open(), await place.open()];
      const { token } = await issue(keys);
      await change(keys, token.id, { action: "disabled" });
      expect(await outcomeOf(elsewhere, token)).toBe("disabled");
      expect(await outcomeOf(elsewhere, guessed(token))).toBe("invalid");
      await change(elsewhere, token.id, { action: "enabled" });
      expect(await outcomeOf(keys, token)).toBe("valid");
    });

    test("an expired key that is extended is valid again, and its record lapses later", async () => {
      const keys = await openStore({ afterlifeMs: 60_000 });
      const { token } = await issue(keys, { ttlMs: 1 });
      await until(async () => (await outcomeOf(keys, token)) === "expired", { what: "the key to expire" });
      expect((await change(keys, token.id, { action: "extended", ttlMs: dayMs })).outcome).toBe("changed");
      expect(await outcomeOf(keys, token)).toBe("valid");
    });

    test("a revoked key is invalid at once, and stays so past its expiry and the end of its record", async () => {
      const place = await makePlace();
      const keys = await place.open({ afterlifeMs: 0 });
      const { token } = await issue(keys, { ttlMs: 200 });
      const elsewhere = await place.open({ afterlifeMs: 0 });
      expect((await change(elsewhere, token.id, { action: "revoked" })).outcome).toBe("changed");
      expect(await outcomeOf(keys, token)).toBe("invalid");
      await until(async () => (await keys.find(token.id)).kind === "absent", { what: "the record to lapse" });
      expect(await outcomeOf(keys, token)).toBe("invalid");
    });

    test("a key whose record has lapsed can still be revoked, once, and by no other change", async () => {
      const keys = await openStore({ afterlifeMs: 0 });
      const { token, record } = await issue(keys, { ttlMs: 50 });
      const { id } = token;
      expect(await keys.forget(id, entryOn(record, "revoked"))).toBe("conflict");
      await untilLapsed(keys, id);
      expect(await change(keys, id, { action: "extended", ttlMs: dayMs })).toMatchObject({ outcome: "refused" });
      expect(await change(keys, id, { action: "revoked" })).toEqual({ outcome: "forgotten" });
      expect(await outcomeOf(keys, token)).toBe("invalid");
      expect(await change(keys, id, { action: "revoked" })).toEqual({ outcome: "unknown" });
      expect(await keys.forget(id, entryOn(record, "revoked"))).toBe("conflict");
      expect((await keys.log({ entriesMax: 10 })).map(({ action }) => action)).toEqual(["issued", "revoked"]);
    });

    test("the first revocation counts, and an unknown key has none", async () => {
      const keys = await openStore();
      const { token } = await issue(keys);
      const first = await change(keys, token.id, { action: "revoked" });
      if (first.outcome !== "changed") throw new Error(first.outcome);
      expect(await change(keys, token.id, { action: "revoked" })).toEqual({ ...first, outcome: "unchanged" });
      expect(await change(keys, mintKeyToken().id, { action: "revoked" })).toEqual({ outcome: "unknown" });
      expect(await keys.list()).toEqual([first.record]);
    });

    test("a list holds every key once, the oldest first, and the trail of one key is found among all", async () => {
      const keys = await openStore();
      let wallMs = Date.now();
      const clock = { ...systemClock, wall: () => (wallMs += 1) };
      const issued = Array.from({ length: 600 }, (_, at) =>
        issueKey({ name: `key ${at}`, scopes: ["*"], ttlMs: dayMs }, { ...meansOf(keys), clock }),
      );
      const ids = (await Promise.all(issued)).map(({ token }) => token.id);
      expect((await keys.list()).map((record) => record.id)).toEqual(ids);

      const trailOf = async (wish: LogQuery) => (await keys.log(wish)).map(({ key }) => key);
      expect(await trailOf({ entriesMax: 1_000, keys: ids.slice(0, 1) })).toEqual([ids[0]]);
      expect(await trailOf({ entriesMax: 1_000 })).toEqual(ids);
      expect(await trailOf({ entriesMax: 2 })).toEqual(ids.slice(-2));
      expect(await trailOf({ entriesMax: 1_000, keys: [mintKeyToken().id] })).toEqual([]);
      const fits: LogQuery["fits"] = ({ name }) => String(name).startsWith("key 4");
      expect(await trailOf({ entriesMax: 2, fits })).toEqual(ids.slice(498, 500));
    });

    test("the trail says who did what and when, and holds neither secrets nor digests", async () => {
      const keys = await openStore();
      const { token, record } = await issue(keys);
      const second = await rotate(keys, token.id, dayMs);
      await changeKey(
        token.id,
        { action: "disabled" },
        { ...meansOf(keys), actor: { by: "admin 0aB1cD2eF3gH", request: "req_1" } },
      );
      const trail = await keys.log({ entriesMax: 10 });
      expect(trail).toMatchObject([
        { at: record.createdAt, by: "the operator", action: "issued", key: token.id, name: "alice" },
        { by: "the operator", action: "rotated", detail: { old_secret_valid_until: expect.any(String) } },
        { by: "admin 0aB1cD2eF3gH", action: "disabled", request: "req_1" },
      ]);
      const told = JSON.stringify(trail);
      for (const each of [token, second]) {
        expect(told).not.toContain(each.reveal().slice(-38));
        expect(told).not.toContain(each.digest(pepper));
      }
    });

    test("keys of either pepper are valid to whoever has both, and unjudged where theirs is not known", async () => {
      const keys = await openStore();
      const { token: older } = await issue(keys);
      await keys.addPepper(otherPepper.fingerprint);
      const both = new Peppers(otherPepper, pepper);
      const { token: newer } = await issueKey(
        { name: "bob", scopes: ["*"], ttlMs: dayMs },
        { ...meansOf(keys), peppers: both },
      );
      for (const token of [older, newer]) {
        expect(await outcomeOf(keys, token, { peppers: both })).toBe("valid");
        expect(await outcomeOf(keys, token, { peppers: new Peppers(pepper, otherPepper) })).toBe("valid");
        expect(await outcomeOf(keys, guessed(token), { peppers: both })).toBe("invalid");
      }
      expect(await outcomeOf(keys, newer)).toBe("unjudged");
      expect(await outcomeOf(keys, older, { peppers: new Peppers(otherPepper) })).toBe("unjudged");
    });

    test("a store knows its peppers, the latest first, and takes no key under another", async () => {
      const place = await makePlace();
      const [keys, elsewhere] = [await place.open(), await place.open()];
      await issue(keys);
      const foreign = { ...meansOf(elsewhere), peppers: new Peppers(otherPepper) };
      const issuing = issueKey({ name: "bob", scopes: ["*"], ttlMs: dayMs }, foreign);
      await expect(issuing).rejects.toMatchObject(unavailable);
      expect(await elsewhere.list()).toHaveLength(1);
      expect(await elsewhere.peppers()).toEqual([pepper.fingerprint]);
      await elsewhere.addPepper(otherPepper.fingerprint);
      expect(await keys.peppers()).toEqual([otherPepper.fingerprint, pepper.fingerprint]);
      await elsewhere.addPepper(pepper.fingerprint);
      expect(await keys.peppers()).toEqual([otherPepper.fingerprint, pepper.fingerprint]);
    });

    test("a pepper alone founds no store", async () => {
      const keys = await openStore();
      await expect(keys.addPepper(otherPepper.fingerprint)).rejects.toMatchObject(unavailable);
      expect(await keys.peppers()).toEqual([]);
    });

    test("one of several processes that found a store with different peppers founds it", async () => {
      const place = await makePlace();
      const founders = ["A", "B", "C"].map((letter) => new Peppers(pepperText.parse(letter.repeat(32))));
      const stores = await Promise.all(founders.map(() => place.open()));
      const issued = await Promise.allSettled(
        stores.map((keys, at) =>
          issueKey({ name: "n", scopes: ["*"], ttlMs: dayMs }, { ...meansOf(keys), peppers: founders[at] ?? peppers }),
        ),
      );
      const [founder, ...others] = founders.filter((_, at) => issued[at]?.status === "fulfilled");
      expect(others).toEqual([]);
      const keys = await place.open();
      expect(await keys.peppers()).toEqual([founder?.current.fingerprint]);
      expect(await keys.list()).toHaveLength(1);
    });

    test("a store that was never used judges no key until the first is issued", async () => {
      const place = await makePlace();
      const [keys, elsewhere] = [await place.open(), await place.open()];
      expect(await keys.peppers()).toEqual([]);
      expect(await keys.list()).toEqual([]);
      const stranger = mintKeyToken();
      await expect(outcomeOf(keys, stranger)).rejects.toMatchObject(unavailable);
      await expect(change(keys, stranger.id, { action: "disabled" })).rejects.toMatchObject(unavailable);
      // Gateways that still know a key of an emptied store hear that it is revoked.
      expect(await change(keys, stranger.id, { action: "revoked" })).toEqual({ outcome: "forgotten" });
      await issue(elsewhere);
      expect(await outcomeOf(keys, stranger)).toBe("invalid");
    });

    test("a store that was emptied calls no key invalid: it judges none", async () => {
      const place = await makePlace();
      const keys = await place.open();
      const { token, record } = await issue(keys);
      await place.empty();
      await expect(outcomeOf(keys, token)).rejects.toMatchObject(unavailable);
      await expect(change(keys, token.id, { action: "disabled" })).rejects.toMatchObject(unavailable);
      const next = { ...record, version: 1 };
      await expect(keys.replace(next, entryOn(next, "changed"))).rejects.toMatchObject(unavailable);
      const later = await place.open();
      await expect(outcomeOf(later, token)).rejects.toMatchObject(unavailable);
      await issue(later);
      expect(await outcomeOf(later, token)).toBe("invalid");
    });

    test("a record of the first release is read, is valid and can be changed", async () => {
      const place = await makePlace();
      const token = mintKeyToken();
      const createdAt = Date.now();
      const old = {
        id: token.id,
        name: "alice",
        digest: token.digest(pepper),
        pepper: pepper.fingerprint,
        scopes: ["*"],
        createdAt,
        expiresAt: createdAt + dayMs,
      };
      await place.keepAsBefore(old);
      const keys = await place.open();
      expect(await outcomeOf(keys, token)).toBe("valid");
      expect(await keys.list()).toEqual([{ ...old, version: 0, kind: "model" }]);
      expect((await change(keys, token.id, { action: "revoked" })).outcome).toBe("changed");
      expect(await outcomeOf(keys, token)).toBe("invalid");
    });

    test("a record with a restriction that this version does not know is not judged without it", async () => {
      const place = await makePlace();
      const token = mintKeyToken();
      const createdAt = Date.now();
      await place.keepAsBefore({
        id: token.id,
        name: "alice",
        digest: token.digest(pepper),
        pepper: pepper.fingerprint,
        scopes: ["*"],
        createdAt,
        expiresAt: createdAt + dayMs,
        onlyOnSundays: true,
      });
      await expect(outcomeOf(await place.open(), token)).rejects.toMatchObject(unavailable);
    });

    test("a key and an entry of a newer version are left out of lists and named there, and hide no other", async () => {
      const keys = await openStore();
      const first = await issue(keys);
      const { record } = await issue(keys, { name: "to be planted" });
      const newer = { ...record, id: mintKeyToken().id, onlyOnSundays: true };
      await keys.issue(newer, { ...entryOn(newer, "issued"), sealedBy: "a newer version" } as AuditEntry);
      const [unread, unreadEntries]: [UnreadRecord[], UnreadRecord[]] = [[], []];
      const listed = (await keys.list(unread)).map(({ id }) => id);
      expect(listed.toSorted()).toEqual([first.record.id, record.id].toSorted());
      expect(unread).toEqual([{ name: newer.id, stored: newer }]);
      expect(await keys.log({ entriesMax: 10 }, unreadEntries)).toHaveLength(2);
      expect(unreadEntries.map(({ stored }) => stored)).toMatchObject([{ sealedBy: "a newer version" }]);
      expect(await outcomeOf(keys, first.token)).toBe("valid");
      await expect(keys.find(newer.id)).rejects.toMatchObject(unavailable);
    });

    test("a term and an action that the oldest gateway of the site cannot read are refused with its name", async () => {
      const place = await makePlace();
      const keys = await place.open();
      const { token } = await issue(keys);
      Object.assign(sinceVersion, { continues: "0.4.0", route_set: "0.4.0" });
      onTestFinished(() => {
        for (const word of ["continues", "route_set"]) delete sinceVersion[word];
      });
      const issueNewer = () => issue(keys, { continues: false });
      const changeOlder = () => change(keys, token.id, { action: "changed", terms: { continues: false } });
      const setRoute = async () => {
        const route = { name: "gpt-4o", version: 1, targets: [{ model: "m" }], createdAt: 1, changedAt: 1 };
        const entry = { at: 1, by: "operator", action: "route_set", route: "gpt-4o", name: "gpt-4o" } as const;
        return (await place.openNamed()).routes.write(route, entry);
      };
      await place.noteGateway("abc 0.3.0 attic");
      await expect(issueNewer()).rejects.toMatchObject({
        code: "key_change_refused",
        message:
          "'continues' needs version 0.4.0 at every gateway of the site, and the gateway attic runs 0.3.0. Update it first.",
      });
      await expect(changeOlder()).rejects.toMatchObject({ code: "key_change_refused" });
      await expect(setRoute()).rejects.toMatchObject({ code: "route_change_refused" });
      expect((await change(keys, token.id, { action: "disabled" })).outcome).toBe("changed");
      await place.noteGateway("abc 0.10.0 attic");
      await issueNewer();
      await setRoute();
    });

    test("a person whose address changed at the provider has the key that they had, and stays locked out", async () => {
      const place = await makePlace();
      const keys = await place.open();
      const means = { ...meansOf(keys), keys };
      const digest = "0123456789ab".padEnd(64, "c");
      const person = (name: string) => ({ name: name + printOf(digest), digest, untilMs: Date.now() + dayMs });
      const keyOf = (proved: Parameters<typeof keyOfPerson>[0]) => keyOfPerson(proved, "viewer", means);
      await issue(keys);
      await place.noteGateway("0123456789abcdefghijkl");
      const first = await keyOf(person("ada@old.example"));
      const beside = await keyOf(person("ada@new.example"));
      expect([beside?.id, beside?.person, beside?.name]).toEqual([first?.id, undefined, first?.name]);
      await place.noteGateway("abc 0.3.0 attic");
      await keyOf(person("ada@new.example"));
      const [, record] = await keys.list();
      expect(record).toMatchObject({ id: first?.id, person: digest, name: person("ada@new.example").name });
      const other = { ...person("eve@example"), digest: "0123456789ab".padEnd(64, "d") };
      expect((await keyOf(other))?.id).not.toBe(first?.id);
      await change(keys, record?.id as KeyId, { action: "disabled" });
      expect(await keyOf(person("ada@third.example"))).toBeUndefined();
    });

    test("a gateway that notes no version counts as 0.2.0", async () => {
      const place = await makePlace();
      const keys = await place.open();
      await issue(keys);
      expect(await keys.gateways()).toEqual([]);
      await place.noteGateway("0123456789abcdefghijkl");
      expect(await keys.gateways()).toMatchObject([{ version: "0.2.0" }]);
    });

    test("a store that was closed says that it is unavailable, and gives no verdict", async () => {
      const keys = await openStore();
      const { token } = await issue(keys);
      await keys.ready();
      await keys.close();
      await expect(outcomeOf(keys, token)).rejects.toMatchObject(unavailable);
      await expect(keys.ready()).rejects.toMatchObject(unavailable);
    });
  });
}
