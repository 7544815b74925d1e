import { expect, test } from "vitest";
import { alertTargetsMax } from "#shared/records/alert-record.ts";
import { onEachStore } from "./admin-api-on-each-store.ts";

const to = "https://hooks.example.org/T0CANARY/B0?key=CANARY";
const on = ["budget", "machine-away"];

onEachStore((managed) => {
  test("an alert target is added, listed by its host alone, called for a test, removed, and in the trail", async () => {
    const { api, ask, changes } = await managed();
    const { status, json } = await ask("POST", "/alerts", { to, on, after: "120s" });
    const { secret, ...shown } = json;
    expect(status).toBe(201);
    expect(secret).toMatch(/^whsec_[\w+/]{43}=$/);
    const kinds = { host: "hooks.example.org", on: ["machine-away", "budget"], after: "2m", format: "standard" };
    expect(shown).toMatchObject({ alert: "hooks-example-org", ...kinds });
    expect((await ask("POST", "/alerts", { to, on: ["disk"], name: "chat", format: "slack" })).json).toMatchObject({
      secret: null,
      after: null,
    });
    expect((await ask("GET", "/alerts")).json).toMatchObject({ data: [{ alert: "chat" }, shown], unread: 0 });
    expect((await ask("POST", "/alerts/chat/test")).json).toEqual({ alert: "chat", status: 204 });
    expect((await ask("DELETE", "/alerts/chat")).json).toEqual({ alert: "chat", state: "removed" });
    const gone = { status: 404, json: { error: { code: "alert_not_found", param: "alert" } } };
    for (const [method, path] of [
      ["DELETE", "/alerts/chat"],
      ["POST", "/alerts/chat/test"],
    ] as const)
      expect(await ask(method, path)).toMatchObject(gone);
    const detail = { host: "hooks.example.org", on: "machine-away, budget", after: "2m", format: "standard" };
    expect(await changes()).toMatchObject([
      { action: "alert_set", alert: "hooks-example-org", name: "hooks-example-org", detail },
      { action: "alert_set", alert: "chat" },
      { action: "alert_removed", alert: "chat", detail: { was: { on: "disk", format: "slack" } } },
    ]);
    expect([...api.sent, ...api.logged].join("\n")).not.toContain("CANARY");
  });

  test("an alert target is for admins alone: a viewer does not even read the list", async () => {
    const { api } = await managed();
    const key = (await api.issue({ kind: "viewer" })).token.reveal();
    for (const [method, path] of [
      ["GET", "/alerts"],
      ["GET", "/alarms"],
      ["POST", "/alerts"],
      ["POST", "/alerts/ops/test"],
      ["DELETE", "/alerts/ops"],
    ] as const)
      expect((await api.ask(method, path, { key })).status).toBe(403);
  });

  test("an alert target keeps its name from another one, and a site has a bounded number of them", async () => {
    const { ask } = await managed();
    for (let place = 0; place < alertTargetsMax; place += 1)
      expect((await ask("POST", "/alerts", { to, on, name: `t${place}` })).status).toBe(201);
    const refused = (param: string | null, says: string) => ({
      status: 409,
      json: { error: { code: "alert_change_refused", param, message: expect.stringContaining(says) } },
    });
    expect(await ask("POST", "/alerts", { to, on, name: "t0" })).toMatchObject(refused("name", "t0 already"));
    expect(await ask("POST", "/alerts", { to, on })).toMatchObject(
      refused(null, "32 alert targets already (alertTargetsMax)"),
    );
  });

  test.each([
    [{ on }, "to"],
    [{ to: "CANARY", on }, "to"],
    [{ to: "ftp://CANARY/", on }, "to"],
    [{ to: "https://CANARY:secret@hooks.example.org/", on }, "to"],
    [{ to: `https://hooks.example.org/${"CANARY".repeat(400)}`, on }, "to"],
    [{ to, on: [] }, "on"],
    [{ to, on: ["weather"] }, "on[0]"],
    [{ to, on, after: "soon" }, "after"],
    [{ to, on, after: "25h" }, "after"],
    [{ to, on, format: "teams" }, "format"],
    [{ to, on, name: "Not a name" }, "name"],
    [{ to, on, secret: "mine" }, "secret"],
  ])(
    "an alert target is refused with the parameter that is wrong, and its URL is not repeated: %j",
    async (body, param) => {
      const { api, ask } = await managed();
      expect(await ask("POST", "/alerts", body)).toMatchObject({ status: 400, json: { error: { param } } });
      expect([...api.sent, ...api.logged].join("\n")).not.toContain("CANARY");
    },
  );
});
