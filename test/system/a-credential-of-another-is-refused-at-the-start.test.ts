import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { lentOnly } from "../harness/found-servers.ts";
import { startNatsServer } from "../harness/nats-server.ts";
import type { OwnServer } from "../harness/own-server.ts";
import { trunkline } from "../harness/trunkline-command.ts";

const users = `
authorization {
  users: [
    { user: attic, password: secret-of-attic, permissions: {
        subscribe: { allow: ["tl1.machine.attic.>", "tl1.presence.attic", "tl1.rollcall"] }
        publish: { allow: ["tl1.reply.*.attic.>", "tl1.presence.attic"] } } }
  ]
}`;

describe.skipIf(lentOnly("nats"))("with the credential that was made for the machine attic", () => {
  let nats: OwnServer;
  beforeAll(async () => void (nats = await startNatsServer({ extraConfig: users })));
  afterAll(() => nats?.stop());
  const url = (): string => nats.url.replace("//", "//attic:secret-of-attic@");

  test.each([
    ["an agent of another name", "agent", { TRUNKLINE_MACHINE: "cellar", TRUNKLINE_RUNTIME: "scripted" }],
    ["a gateway", "gateway", { TRUNKLINE_PORT: "0", TRUNKLINE_OPERATIONS_PORT: "0" }],
  ])("%s does not start, and says in one line why", async (_who, command, settings) => {
    const { exitCode, stderr } = await trunkline([command], { TRUNKLINE_NATS_URL: url(), ...settings });
    const said = stderr.split("\n").filter((line) => line.startsWith("trunkline: "));
    expect(exitCode).toBe(78);
    expect(said).toEqual([expect.stringMatching(/does not let this credential subscribe to tl1\..*TRUNKLINE_MACHINE/)]);
    expect(stderr).not.toContain("secret-of-attic");
  });
});
