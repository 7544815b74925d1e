import packageJson from "../../package.json" with { type: "json" };
import { expect, test } from "vitest";
import { type JoinLine, parseJoinLine } from "#shared/protocol/pairing.ts";
import { joinOnStore, lineOnStore, pairOnStore, publicUrl } from "../harness/pair-on-store.ts";
import type { Method } from "../unit/gateway/operations/admin-on-a-store.ts";
import { onEachStore } from "./admin-api-on-each-store.ts";

const { version } = packageJson;
const pin = "p".repeat(43);

onEachStore((managed) => {
  test("a join line is made once, paired with, and its machine is cordoned, renamed and revoked", async () => {
    const { machines, means, ask, read, api, changes } = await managed();
    await machines.noteSite({ publicUrl });
    const made = await ask("POST", "/machines/attic/pair", { models: ["llama*"], ttl: "5m" });
    const line = parseJoinLine(String(made.json["join"]));
    expect(made).toMatchObject({
      status: 201,
      json: {
        name: "attic",
        command: `echo "${String(made.json["join"])}" | npx -y "${publicUrl}/agent.tgz?${version}" agent --join -`,
        expires_at: new Date(api.clock.wall() + 300_000).toISOString(),
      },
    });
    expect((await read("/machines/attic")).json).toMatchObject({
      state: "joining",
      models: ["llama*"],
      paired_at: null,
    });
    if (line === undefined) throw new Error("what was made is no join line");
    expect(await joinOnStore(line, means)).toMatchObject({ outcome: "paired" });
    expect((await read("/machines/attic")).json).toMatchObject({ state: "paired", paired_from: "203.0.113.1" });

    const cordoned = await ask("POST", "/machines/attic/cordon", { reason: "new fans", drains: true });
    expect(cordoned.json).toMatchObject({ state: "cordoned", cordon: { reason: "new fans" } });
    expect((await machines.find("attic"))?.cordon?.drains).toBe(true);
    expect((await ask("POST", "/machines/attic/uncordon")).json).toMatchObject({ state: "paired", cordon: null });
    expect((await ask("POST", "/machines/attic/rename", { name: "loft" })).json).toMatchObject({ machine: "loft" });
    expect(await read("/machines/attic")).toMatchObject({
      status: 404,
      json: { error: { code: "machine_not_found" } },
    });
    expect((await ask("POST", "/machines/loft/revoke")).json).toMatchObject({ state: "revoked" });
    expect((await ask("DELETE", "/machines/loft")).status).toBe(200);
    expect(await changes()).toMatchObject([
      { action: "machine_paired", machine: "attic" },
      { action: "machine_joined" },
      { action: "machine_cordoned" },
      { action: "machine_uncordoned" },
      { action: "machine_renamed", machine: "loft", detail: { was: "attic" } },
      { action: "machine_revoked", machine: "loft" },
      { action: "machine_removed", machine: "loft" },
    ]);
    const secret = String(made.json["join"]).split(".").at(-1) ?? "";
    expect(api.sent.filter((each) => each.includes(secret))).toHaveLength(1);
    expect(JSON.stringify(api.logged)).not.toContain(secret);
  });

  test("a revoked or disabled admin key ends its unused join lines, and those of keys that it issued", async () => {
    const { machines, means, ask, api, admin } = await managed();
    await machines.noteSite({ publicUrl });
    const lent = (await ask("POST", "/keys", { name: "a helper", kind: "admin", ttl: "1d" })).json;
    const lineBy = async (key: unknown, machine: string): Promise<JoinLine> => {
      const made = await api.ask("POST", `/machines/${machine}/pair`, { key: String(key) });
      const line = parseJoinLine(String(made.json["join"]));
      if (line === undefined) throw new Error("what was made is no join line");
      return line;
    };
    const byLent = await lineBy(lent["key"], "attic");
    expect((await ask("POST", `/keys/${String(lent["id"])}/disable`)).status).toBe(200);
    expect(await joinOnStore(byLent, means)).toMatchObject({ outcome: "withdrawn", machine: "attic" });
    expect((await ask("POST", `/keys/${String(lent["id"])}/enable`)).status).toBe(200);
    const used = await lineBy(lent["key"], "cellar");
    expect(await joinOnStore(used, means)).toMatchObject({ outcome: "paired" });

    expect((await ask("POST", `/keys/${admin.record.id}/revoke`)).status).toBe(200);
    expect(await joinOnStore(byLent, means)).toMatchObject({ outcome: "withdrawn", machine: "attic" });
    expect(await machines.find("cellar")).toMatchObject({ pairedBy: `admin ${String(lent["id"])}` });
    const ofOperator = await lineOnStore("attic", means);
    expect(await joinOnStore(ofOperator, means)).toMatchObject({ outcome: "paired" });
  });

  test("the site is told as its machines have to know it, with a pin where npm cannot verify it", async () => {
    const { machines, ask, read } = await managed();
    expect((await read("/site")).json).toMatchObject({ public_url: null, certificate_sha256: null });
    expect(await ask("POST", "/machines/attic/pair")).toMatchObject({
      status: 409,
      json: { error: { code: "machine_change_refused", message: expect.stringContaining("TRUNKLINE_PUBLIC_URL") } },
    });
    await machines.noteSite({ publicUrl, certificateSha256: pin });
    const { id: site } = await machines.site();
    expect((await read("/site")).json).toEqual({ site, public_url: publicUrl, certificate_sha256: pin });
    const { json } = await ask("POST", "/machines/attic/pair");
    expect(parseJoinLine(String(json["join"]))).toMatchObject({ certificateSha256: pin });
    expect(json["command"]).toBe(`echo "${String(json["join"])}" | npx -y ./agent.tgz agent --join -`);
  });

  test.each<[words: string, method: Method, path: string, body: unknown, status: number, code: string, param: unknown]>(
    [
      ["a line for a paired machine", "POST", "/shed/pair", {}, 409, "machine_change_refused", null],
      ["a line for longer than ten minutes", "POST", "/attic/pair", { ttl: "11m" }, 400, "invalid_value", "ttl"],
      ["a line for the name of an unpaired agent", "POST", "/unpaired/pair", {}, 409, "machine_name_used", "machine"],
      [
        "that name for a paired machine",
        "POST",
        "/shed/rename",
        { name: "unpaired" },
        409,
        "machine_name_used",
        "machine",
      ],
      ["another name for a stranger", "POST", "/attic/rename", { name: "loft" }, 404, "machine_not_found", "machine"],
      ["no name", "POST", "/shed/rename", {}, 400, "missing_required_parameter", "name"],
      ["a reason of two lines", "POST", "/shed/cordon", { reason: "a\nb" }, 400, "invalid_value", "reason"],
      ["a revocation of a stranger", "POST", "/attic/revoke", undefined, 404, "machine_not_found", "machine"],
      ["the removal of a paired machine", "DELETE", "/shed", undefined, 409, "machine_change_refused", null],
    ],
  )("%s is refused", async (_words, method, path, body, status, code, param) => {
    const { machines, means, ask } = await managed();
    await machines.noteSite({ publicUrl });
    await pairOnStore("shed", means);
    const before = await machines.list();
    expect(await ask(method, `/machines${path}`, body)).toMatchObject({ status, json: { error: { code, param } } });
    expect(await machines.list()).toEqual(before);
  });
});
