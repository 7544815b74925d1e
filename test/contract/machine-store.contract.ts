import { describe, expect, test } from "vitest";
import {
  type MachineRecord,
  type MachineStore,
  removeMachine,
  setMachineModels,
} from "#shared/machines/machine-record.ts";
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
const set = (machines: MachineStore, name: string, ...models: string[]) =>
  setMachineModels(name, models, meansOn(machines));

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
      expect((await setMachineModels("attic", undefined, meansOn(machines))).record.models).toBeUndefined();
      expect(await removeMachine("attic", meansOn(machines))).toMatchObject({ name: "attic", version: 3 });
      expect(await removeMachine("attic", meansOn(machines))).toBeUndefined();
      expect(await machines.list()).toEqual([]);
    });

    test("fields that this build does not know stay when the patterns change", async () => {
      const { place, machines } = await founded();
      const { record } = await set(machines, "attic", "llama*");
      const newer = { ...record, version: 2, publicKey: "UABC", notes: { rack: 7 } } as MachineRecord;
      const entry = { at: 1, by: "a newer build", action: "machine_set", machine: "attic", name: "attic" } as const;
      expect(await machines.write(newer, entry)).toBe("written");
      await set(await place.openMachines(), "attic", "qwen*");
      expect(await machines.find("attic")).toMatchObject({
        version: 3,
        models: ["qwen*"],
        publicKey: "UABC",
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
      expect((await keys.log({ entriesMax: 10, key })).map(({ action }) => action)).toEqual(["issued"]);
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

    test("names and patterns that would mean something to the store are only texts", async () => {
      const { machines } = await founded();
      const patterns = ["'); DROP TABLE machines; --", 'a*b"\\', "🦙*"].map((text) => text.replaceAll(" ", ""));
      await set(machines, "attic", ...patterns);
      expect((await machines.find("attic"))?.models).toEqual(patterns);
    });
  });
}
