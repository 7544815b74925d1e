import { beforeEach, expect, test } from "vitest";
import { systemClock as clock } from "#shared/process/clock.ts";
import { exitCodes, Lifecycle, StartFailure } from "#shared/process/lifecycle.ts";
import { createLog } from "#shared/process/log.ts";
import { decodeJson } from "#shared/protocol/frame-payload.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import { presence, type Presence } from "#shared/protocol/presence.ts";
import { presencePattern } from "#shared/protocol/subjects.ts";
import { type Pairing, readPairing, writePairing } from "#shared/site/pairing-file.ts";
import { agentConfig } from "../../services/agent/config.ts";
import { PairedAgent } from "../../services/agent/paired-agent.ts";
import { folderOfTest } from "../harness/temporary-folder.ts";
import { TunnelSite } from "../harness/tunnel-site.ts";
import { until } from "../harness/until.ts";

let stateDir: string;
beforeEach(() => void (stateDir = folderOfTest()));

/** An agent in this process, paired with the site under this name, and all that the site hears of machines. */
async function startPaired(site: TunnelSite, name: string) {
  const { publicKey, seed, origin, site: id } = site.pair(name);
  const pairing: Pairing = {
    origin,
    join: newToken().slice(0, 12),
    publicKey,
    seed,
    site: id,
    machine: name,
    pairedAt: "2026-01-01T00:00:00.000Z",
  };
  writePairing(stateDir, pairing);
  const heard: Presence[] = [];
  site.broker.connect().subscribe(presencePattern, ({ data }) => {
    const told = decodeJson(presence, data);
    if (told !== undefined) heard.push(told);
  });
  const logged: string[] = [];
  const log = createLog({ level: "info", name: "test", write: (line) => void logged.push(line) });
  const lifecycle = new Lifecycle({ clock, log });
  const environment = { TRUNKLINE_RUNTIME: "scripted", TRUNKLINE_STATE_DIR: stateDir };
  await new PairedAgent({ config: agentConfig(environment), pairing, environment, lifecycle, clock, log }).start();
  return {
    heard,
    logged,
    failed: lifecycle.failed,
    isReady: (machine: string) =>
      until(() => heard.find((each) => each.machine === machine && each.state === "ready"), {
        what: `${machine} to be ready`,
      }),
    [Symbol.asyncDispose]: () => lifecycle.stop(0),
  };
}

test("a machine is known by the name that its site gives it, and says that it is behind a tunnel", async () => {
  await using site = await TunnelSite.start();
  await using agent = await startPaired(site, "attic");
  expect(await agent.isReady("attic")).toMatchObject({ machine: "attic", tunnelled: true });
});

test("a renamed machine keeps its new name and works on under it, in the same process", async () => {
  await using site = await TunnelSite.start();
  await using agent = await startPaired(site, "attic");
  await agent.isReady("attic");
  await site.rename("attic", "loft");
  await agent.isReady("loft");
  expect(readPairing(stateDir)?.machine).toBe("loft");
  await until(() => agent.heard.findLast(({ machine }) => machine === "attic")?.state === "gone", {
    what: "a goodbye",
  });
  expect(agent.logged.filter((line) => line.includes("does not let"))).toEqual([]);
  await site.rename("loft", "cellar");
  await agent.isReady("cellar");
});

test.each([
  ["revoked", (site: TunnelSite) => site.revoke("attic")],
  ["removed", async (site: TunnelSite) => site.remove("attic")],
])("a machine that was %s ends with the reason, and no supervisor starts it again", async (_, befall) => {
  await using site = await TunnelSite.start();
  await using agent = await startPaired(site, "attic");
  await agent.isReady("attic");
  await befall(site);
  const reason = await agent.failed;
  expect(reason).toBeInstanceOf(StartFailure);
  expect(reason).toMatchObject({ exitCode: exitCodes.config, message: expect.stringContaining("machines pair") });
});
