import { describe, expect, test } from "vitest";
import { changeMachine, type MachineChange, removeMachine } from "#shared/records/change-machine.ts";
import type { MachineRecord, MachineStore } from "#shared/records/machine-record.ts";
import { type JoinLine, newMachineKeyPair } from "#shared/protocol/pairing.ts";
import { joinOnStore, lineOnStore, publicUrl } from "../harness/pair-on-store.ts";
import { issueOn } from "./key-changes.contract.ts";
import { HeardChanges } from "./key-changes-heard.ts";
import type { KeyPlace } from "./key-store-place.ts";

const clock = { wall: () => 1_800_000_000_000 };
const withoutReplica = { awaitReplica: async () => "none" as const };
const meansOn = (machines: MachineStore) => ({
  machines,
  keys: withoutReplica,
  clock,
  actor: { by: "the operator", request: "req_1" },
});
const change = (machines: MachineStore, name: string, wish: MachineChange) =>
  changeMachine(name, wish, meansOn(machines));
const set = (machines: MachineStore, name: string, ...models: string[]) =>
  change(machines, name, { action: "machine_set", models });
const makeLine = (machines: MachineStore, name: string) => lineOnStore(name, { machines, clock });
const join = (machines: MachineStore, line: JoinLine, by?: { publicKey?: string; from?: string }) =>
  joinOnStore(line, { machines, clock }, by);

export function machineStoreContract(adapter: string, makePlace: () => Promise<KeyPlace>): void {
  /** A store that a key has founded. */
  async function founded() {
    const place = await makePlace();
    const keys = await place.open();
    const key = await issueOn(keys);
    return { place, keys, key, machines: await place.openMachines() };
  }

  describe(`records of machines in ${adapter}`, () => {
    test("a record that one process sets is there for all, by name and in the list of all", async () => {
      const { place, machines } = await founded();
      await set(machines, "cellar", "qwen*");
      await set(machines, "attic", "llama3.2", "hf.co/org/*");
      const elsewhere = await place.openMachines();
      expect((await elsewhere.find("attic"))?.models).toEqual(["llama3.2", "hf.co/org/*"]);
      expect(await elsewhere.find("shed")).toBeUndefined();
      expect((await elsewhere.list()).map(({ name, version }) => [name, version])).toEqual([
        ["attic", 1],
        ["cellar", 1],
      ]);
    });

    test("a record is replaced, told as unchanged when it was so before, and removed once", async () => {
      const { machines } = await founded();
      expect((await set(machines, "attic", "llama*")).outcome).toBe("changed");
      expect((await set(machines, "attic", "llama*")).outcome).toBe("unchanged");
      expect((await set(machines, "attic", "qwen*")).record).toMatchObject({ version: 2, models: ["qwen*"] });
      const forAll = await change(machines, "attic", { action: "machine_set", models: undefined });
      expect(forAll.record.models).toBeUndefined();
      expect(await removeMachine("attic", meansOn(machines))).toMatchObject({ name: "attic", version: 3 });
      await expect(removeMachine("attic", meansOn(machines))).rejects.toMatchObject({ code: "machine_not_found" });
      expect(await machines.list()).toEqual([]);
    });

    test("fields that this build does not know stay when the patterns change", async () => {
      const { place, machines } = await founded();
      const { record } = await set(machines, "attic", "llama*");
      const newer = { ...record, version: 2, notes: { rack: 7 } } as MachineRecord;
      const entry = { at: 1, by: "a newer build", action: "machine_set", machine: "attic", name: "attic" } as const;
      expect(await machines.write(newer, entry)).toBe("written");
      await set(await place.openMachines(), "attic", "qwen*");
      expect(await machines.find("attic")).toMatchObject({
        version: 3,
        models: ["qwen*"],
        notes: { rack: 7 },
      });
    });

    test("a change on a record that somebody else has changed meanwhile is not made", async () => {
      const { place, machines } = await founded();
      const { record } = await set(machines, "attic", "llama*");
      await set(await place.openMachines(), "attic", "qwen*");
      const entry = { at: 1, by: "somebody", action: "machine_set", machine: "attic", name: "attic" } as const;
      expect(await machines.write({ ...record, version: 2 }, entry)).toBe("conflict");
      expect(await machines.write({ ...record, version: 1 }, entry)).toBe("conflict");
      expect(await machines.remove(record, entry)).toBe("conflict");
      expect((await machines.find("attic"))?.models).toEqual(["qwen*"]);
      const all = Array.from({ length: 10 }, async (_, at) => set(machines, "attic", `m${at}`));
      await Promise.all(all);
      expect((await machines.find("attic"))?.version).toBe(12);
    });

    test("each change is in the audit trail of the keys, and that of one key has none of it", async () => {
      const { keys, key, machines } = await founded();
      await set(machines, "attic", "llama*");
      await set(machines, "attic", "qwen*");
      await removeMachine("attic", meansOn(machines));
      const entries = await keys.log({ entriesMax: 10 });
      expect(entries.slice(1)).toEqual([
        expect.objectContaining({ action: "machine_set", machine: "attic", by: "the operator", request: "req_1" }),
        expect.objectContaining({ action: "machine_set", detail: { models: ["qwen*"], was: { models: ["llama*"] } } }),
        expect.objectContaining({ action: "machine_removed", detail: { models: ["*"], was: { models: ["qwen*"] } } }),
      ]);
      expect((await keys.log({ entriesMax: 10, keys: [key] })).map(({ action }) => action)).toEqual(["issued"]);
    });

    test("each change is told to whoever follows the changes of keys, and no key's change is missed for it", async () => {
      const { place, keys, machines } = await founded();
      const heard = new HeardChanges(await place.openChanges());
      await heard.untilTold("gap");
      const before = await issueOn(keys);
      await set(machines, "attic", "llama*");
      await heard.untilTold("machine");
      const mark = heard.mark();
      await removeMachine("attic", meansOn(await place.openMachines()));
      const after = await issueOn(keys);
      await heard.untilIds(2);
      await heard.untilTold("machine", { since: mark });
      expect(heard.ids).toEqual([before, after]);
      expect(heard.gaps).toBe(1);
    });

    test("a store that no key has founded, or that was emptied, takes no record", async () => {
      const place = await makePlace();
      await expect(set(await place.openMachines(), "attic", "llama*")).rejects.toMatchObject({
        code: "backend_unavailable",
        internal: expect.stringContaining("issue a key"),
      });
      expect(await (await place.openMachines()).list()).toEqual([]);
    });

    test("the site has one id for good, whoever asks for it first, and what gateways note of it", async () => {
      const { place, machines } = await founded();
      const elsewhere = await place.openMachines();
      const sites = await Promise.all([machines.site(), elsewhere.site(), machines.site()]);
      expect(new Set(sites.map(({ id }) => id)).size).toBe(1);
      await elsewhere.noteSite({ publicUrl, certificateSha256: "abc" });
      await elsewhere.noteSite({ publicUrl: "https://other.example.org" });
      expect(await machines.site()).toEqual({ id: sites[0].id, publicUrl: "https://other.example.org" });
    });

    test("a join line pairs one machine, which is found by its key, by the line and by its name", async () => {
      const { place, keys, machines } = await founded();
      const line = await makeLine(machines, "attic");
      expect((await machines.findByJoin(line.id))?.name).toBe("attic");
      expect(await machines.findByJoin("000000000000")).toBeUndefined();
      const joined = await join(await place.openMachines(), line);
      expect(joined).toMatchObject({ outcome: "paired", isNew: true, machine: "attic" });
      expect(await machines.findByKey(joined.publicKey)).toMatchObject({ name: "attic", pairedBy: "the operator" });
      expect(await machines.findByKey(newMachineKeyPair().publicKey)).toBeUndefined();
      expect((await keys.log({ entriesMax: 10 })).slice(1)).toMatchObject([
        { action: "machine_paired", by: "the operator" },
        { action: "machine_joined", by: "machine attic", request: "req_2", detail: { from: "203.0.113.1" } },
      ]);
      expect(JSON.stringify(await keys.log({ entriesMax: 10 }))).not.toContain(
        Buffer.from(line.secret).toString("base64url"),
      );
    });

    test("exactly one of many machines that use one join line at once is paired", async () => {
      const { place, machines } = await founded();
      const line = await makeLine(machines, "attic");
      const others = await Promise.all([place.openMachines(), place.openMachines()]);
      const uses = await Promise.all([machines, ...others, ...others].map(async (store) => join(store, line)));
      const paired = uses.filter(({ outcome }) => outcome === "paired");
      expect(paired).toHaveLength(1);
      expect(uses.filter(({ outcome }) => outcome === "used")).toHaveLength(4);
      expect((await machines.find("attic"))?.publicKey).toBe(paired[0]?.publicKey);
    });

    test("a public key is accepted once, also for another name, after a revocation and without its record", async () => {
      const { machines } = await founded();
      const { publicKey } = await join(machines, await makeLine(machines, "attic"));
      const again = async (name: string) => join(machines, await makeLine(machines, name), { publicKey });
      expect((await again("cellar")).outcome).toBe("known-key");
      await change(machines, "attic", { action: "machine_revoked" });
      expect((await again("attic")).outcome).toBe("known-key");
      const record = await machines.find("attic");
      if (record === undefined) throw new Error("the record of attic is gone");
      const entry = { at: 1, by: "somebody", action: "machine_removed", machine: "attic", name: "attic" } as const;
      expect(await machines.remove(record, entry)).toBe("written");
      expect((await again("attic")).outcome).toBe("known-key");
      expect(await machines.findByKey(publicKey)).toBeUndefined();
    });

    test("a renamed machine keeps its key and frees its name, and takes no name that has a record", async () => {
      const { machines } = await founded();
      const { publicKey } = await join(machines, await makeLine(machines, "attic"));
      await set(machines, "cellar", "*");
      const toCellar = change(machines, "attic", { action: "machine_renamed", name: "cellar" });
      await expect(toCellar).rejects.toMatchObject({ code: "machine_change_refused" });
      expect((await machines.list()).map(({ name }) => name)).toEqual(["attic", "cellar"]);
      await change(machines, "attic", { action: "machine_renamed", name: "loft" });
      expect(await machines.find("attic")).toBeUndefined();
      expect(await machines.findByKey(publicKey)).toMatchObject({ name: "loft", version: 3 });
      const next = await join(machines, await makeLine(machines, "attic"));
      expect(next).toMatchObject({ outcome: "paired", machine: "attic" });
      expect(await machines.findByKey(publicKey)).toMatchObject({ name: "loft" });
    });

    test("what is noted of seen machines changes no record, writes no entry and wakes nobody", async () => {
      const { place, keys, machines } = await founded();
      const { publicKey } = await join(machines, await makeLine(machines, "attic"));
      const heard = new HeardChanges(await place.openChanges());
      await heard.untilTold("gap");
      const before = await machines.find("attic");
      const offer = { runtime: "ollama 0.9.1", models: 3 };
      await machines.noteSeen(new Map([[publicKey, { atMs: 1_700_000_000_000.4, ...offer }]]));
      await machines.noteSeen(new Map());
      expect(await (await place.openMachines()).lastSeen()).toEqual(
        new Map([[publicKey, { atMs: 1_700_000_000_000, ...offer }]]),
      );
      expect(await machines.find("attic")).toEqual(before);
      expect((await keys.log({ entriesMax: 10 })).at(-1)?.action).toBe("machine_joined");
      const after = await issueOn(keys);
      await heard.untilIds(1);
      expect([heard.ids, heard.since(0).has("machine")]).toEqual([[after], false]);
    });

    test("names and patterns that would mean something to the store are only texts", async () => {
      const { machines } = await founded();
      const patterns = ["'); DROP TABLE machines; --", 'a*b"\\', "🦙*"].map((text) => text.replaceAll(" ", ""));
      await set(machines, "attic", ...patterns);
      expect((await machines.find("attic"))?.models).toEqual(patterns);
    });
  });
}
