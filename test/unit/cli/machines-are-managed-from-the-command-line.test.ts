import packageJson from "../../../package.json" with { type: "json" };
import { expect, test } from "vitest";
import { parseJoinLine } from "#shared/protocol/pairing.ts";
import { lineOnStore, joinOnStore, pairOnStore, publicUrl } from "../../harness/pair-on-store.ts";
import { commandLine } from "./command-line.ts";

const { version } = packageJson;
const at = "2026-01-01T00:00:00.000Z";

/** A command line on a store with a key, whose site has a URL. */
async function siteOnCommandLine() {
  const line = await commandLine();
  await line.issue();
  const { clock, inStore } = line;
  await inStore(({ machines }) => machines.noteSite({ publicUrl }));
  const pair = (name: string) => inStore(({ machines }) => pairOnStore(name, { machines, clock }));
  return { ...line, pair };
}

test("trunkline machines models, list and remove say what they did, in words and in JSON, and set is models by its older name", async () => {
  const { machines, issue } = await commandLine();
  await issue();
  expect((await machines("set", "attic", "--models", "llama*, qwen2.5")).out).toBe("attic may offer llama*, qwen2.5\n");
  expect((await machines("models", "attic", "--models", "llama*,qwen2.5")).out).toBe(
    "attic might before, and may offer llama*, qwen2.5\n",
  );
  expect(JSON.parse((await machines("models", "the-cellar", "--models", "*", "--json")).out)).toMatchObject({
    machine: "the-cellar",
    state: "unpaired",
    models: ["*"],
    created_at: at,
    changed_at: at,
    outcome: "changed",
  });
  expect((await machines("list")).out).toBe(
    [
      "machine     state     models           seen  changed",
      "attic       unpaired  llama*, qwen2.5  -     2026-01-01 00:00:00Z",
      "the-cellar  unpaired  *                -     2026-01-01 00:00:00Z",
      "",
    ].join("\n"),
  );
  expect(JSON.parse((await machines("list", "--json")).out)).toMatchObject([{ machine: "attic" }, { models: ["*"] }]);
  expect((await machines("remove", "the-cellar")).out).toBe("the-cellar has no record any more\n");
  expect(JSON.parse((await machines("remove", "attic", "--json")).out)).toEqual({
    machine: "attic",
    outcome: "removed",
  });
  expect(await machines("list")).toMatchObject({ out: "", err: expect.stringContaining("No machine has a record") });
});

test("trunkline machines pair prints one line to paste, which pairs the machine, and explains it beside", async () => {
  const { machines, inStore, clock } = await siteOnCommandLine();
  const { out, err } = await machines("pair", "attic", "--models", "llama*", "--ttl", "5m");
  const [, join = ""] =
    /^echo "(\S+)" \| npx -y "https:\/\/models\.example\.org\/agent\.tgz\?\d+\.\d+\.\d+" agent --join -\n$/.exec(out) ??
    [];
  expect(err).toContain("It pairs attic, once, until 2026-01-01 00:05:00Z, in 5 minutes.\n");
  const older = `npx -y -p node@24 -p "${publicUrl}/agent.tgz?${version}" trunkline agent`;
  expect(err).toContain(`older than 22.19`);
  expect(err).toContain(`\n  echo "${join}" | ${older} --join -\n  ${older} install\n`);
  expect(err).toContain(`survives reboots: npx -y "${publicUrl}/agent.tgz?${version}" agent install\n`);
  const line = parseJoinLine(join);
  if (line === undefined) throw new Error(`no join line: ${out}`);
  expect((await machines("show", "attic")).out).toContain("not used yet, good until 2026-01-01 00:05:00Z");
  const joined = await inStore(({ machines: store }) => joinOnStore(line, { machines: store, clock }));
  expect(joined.outcome).toBe("paired");
  const shown = (await machines("show", "attic")).out;
  expect(shown).toMatch(/^paired +2026-01-01 00:00:00Z \(in 0 seconds\) by cli \S+, from 203\.0\.113\.1$/m);
  expect(shown).toMatch(/^models +llama\*$/m);
  expect(shown).toMatch(/^seen +never$/m);
});

test("trunkline machines pair takes the URL of its environment first, and says how to set one where there is none", async () => {
  const { machinesWith, issue } = await commandLine();
  await issue();
  await expect(machinesWith({}, "pair", "attic")).rejects.toThrow("(TRUNKLINE_PUBLIC_URL)");
  const url = { TRUNKLINE_PUBLIC_URL: "http://127.0.0.1:8484" };
  const { out, err } = await machinesWith(url, "pair", "attic");
  expect(out).toContain('echo "http://127.0.0.1:8484/#');
  expect(out).toContain(`| npx -y "http://127.0.0.1:8484/agent.tgz?${version}" agent --join -`);
  expect(err).toContain("http://127.0.0.1:8484 is this host only, for trying");
  const clear = machinesWith({ TRUNKLINE_PUBLIC_URL: "http://models.example.org" }, "pair", "attic");
  await expect(clear).rejects.toThrow("http:// is for 127.0.0.1 only");
});

test("trunkline machines pair names NODE_EXTRA_CA_CERTS first where a private authority signed the site's certificate", async () => {
  const { machines, machinesWith } = await siteOnCommandLine();
  const { err } = await machinesWith({ TRUNKLINE_PUBLIC_URL: "https://models.internal" }, "pair", "attic");
  expect(err).toMatch(/private authority signed[^]*export NODE_EXTRA_CA_CERTS=\$PWD\/root\.crt\n/);
  expect((await machines("pair", "attic")).err).not.toContain("private authority");
});

test("trunkline machines pair pins a certificate that npm could not verify, and starts a copied package instead", async () => {
  const { machines, inStore } = await siteOnCommandLine();
  await inStore((store) => store.machines.noteSite({ publicUrl, certificateSha256: "p".repeat(43) }));
  const { out, err } = await machines("pair", "attic");
  expect(out).toMatch(
    /^echo "https:\/\/models\.example\.org\/#\w{12}\.[\w-]{22}\.p{43}" \| npx -y \.\/agent\.tgz agent --join -\n$/,
  );
  expect(err).toContain(
    "copy it to the machine: curl --insecure --output agent.tgz https://models.example.org/agent.tgz",
  );
});

test("trunkline machines cordon, uncordon, rename and revoke say what they did, and what was so before", async () => {
  const { machines, pair } = await siteOnCommandLine();
  await pair("attic");
  const said: string[] = [];
  for (const args of [
    ["cordon", "attic", "--reason", "new fans"],
    ["cordon", "attic", "--reason", "new fans"],
    ["list"],
    ["uncordon", "attic"],
    ["uncordon", "attic"],
    ["rename", "attic", "loft"],
    ["revoke", "loft"],
    ["revoke", "loft"],
    ["cordon", "cellar"],
  ]) {
    said.push((await machines(...args)).out);
  }
  expect(said.join("")).toBe(
    [
      "attic gets no new jobs",
      "attic was cordoned before",
      "machine  state     models  seen  changed",
      "attic    cordoned  any     -     2026-01-01 00:00:00Z",
      "attic gets jobs again",
      "attic was not cordoned",
      "attic is called loft now",
      "loft is revoked: its key never works again",
      "loft was revoked before",
      "cellar gets no new jobs (it had no record before: is that its name?)",
      "",
    ].join("\n"),
  );
  expect((await machines("show", "cellar")).out).toMatch(/^cordoned +.*: its operator gave no reason$/m);
});

test("trunkline machines pair and external mark a machine whose models run elsewhere, and keep its record while it is marked", async () => {
  const { machines } = await siteOnCommandLine();
  await machines("pair", "cloud", "--external");
  expect((await machines("list")).out).toMatch(/^cloud +joining, external /m);
  expect((await machines("show", "cloud")).out).toMatch(/^external +yes: only routes that say so lead there$/m);
  expect((await machines("external", "cloud", "--off")).out).toBe("cloud is not external: any request may go there\n");
  expect((await machines("show", "cloud")).out).not.toContain("external");
  expect(JSON.parse((await machines("external", "far", "--json")).out)).toMatchObject({
    machine: "far",
    external: true,
    outcome: "changed",
  });
  expect((await machines("external", "far")).out).toBe("far is external: only routes that say so lead there\n");
  await expect(machines("remove", "far")).rejects.toThrow("trunkline machines external far --off");
});

test("trunkline machines labels are set for routes to name, and shown", async () => {
  const { machines } = await siteOnCommandLine();
  expect((await machines("labels", "attic", "--labels", "mac, fast")).out).toBe("attic has the labels fast, mac\n");
  expect(JSON.parse((await machines("labels", "attic", "--labels", "fast,mac", "--json")).out)).toMatchObject({
    labels: ["fast", "mac"],
    outcome: "unchanged",
  });
  expect((await machines("show", "attic")).out).toMatch(/^labels +fast, mac$/m);
  expect((await machines("labels", "attic", "--labels", "none")).out).toBe("attic has no labels\n");
  expect((await machines("show", "attic")).out).not.toContain("labels");
});

test("trunkline machines show tells of a second use of a join line, and when the machine was seen", async () => {
  const { machines, inStore, clock } = await siteOnCommandLine();
  await inStore(async ({ machines: store }) => {
    const means = { machines: store, clock };
    const line = await lineOnStore("attic", means);
    const { publicKey } = await joinOnStore(line, means);
    await joinOnStore(line, means, { from: "198.51.100.9" });
    await store.noteSeen(new Map([[publicKey, { atMs: clock.wall() - 7_200_000, runtime: null, models: 0 }]]));
  });
  const { out } = await machines("show", "attic");
  expect(out).toMatch(/^line used again +.* from 198\.51\.100\.9: if the first was not you, revoke this machine$/m);
  expect(out).toMatch(/^seen +2025-12-31 22:00:00Z \(2 hours ago\)$/m);
  expect((await machines("list")).out).toContain("2 hours ago");
});

test.each([
  [["set", "attic"], "required option '--models <patterns>'"],
  [["set", "attic", "--models", ""], "It must not be empty"],
  [["set", "attic", "--models", "two words"], "without spaces"],
  [["set", "attic", "--models", Array.from({ length: 65 }, () => "m").join(",")], "at most 64 patterns"],
  [["set", "The Attic", "--models", "*"], "small letters, digits or hyphens"],
  [["pair", "attic", "--ttl", "11m"], "must be at most 10m"],
  [["labels", "attic", "--labels", "Very Fast"], "1 to 31 small letters, digits or hyphens"],
  [["rename", "attic"], "missing required argument 'new-name'"],
  [["cordon", "attic", "--reason", "two\nlines"], "must be printable, on one line"],
  [["remove"], "missing required argument 'name'"],
])("trunkline machines %j is told as wrong usage, with what is wrong", async (args, words) => {
  const { machines, issue } = await commandLine();
  await issue();
  const failed = await machines(...args).catch((error: unknown) => error);
  expect(failed).toMatchObject({ said: { err: expect.stringContaining(words) } });
});

test.each([
  [["remove", "cellar"], "There is no record of a machine cellar: `trunkline machines list` shows all."],
  [["show", "cellar"], "There is no record of a machine cellar"],
  [["revoke", "cellar"], "There is no record of a machine cellar"],
  [["remove", "attic"], "The machine attic is paired: revoke it first"],
  [["pair", "attic"], "The machine attic is paired already: revoke it first (trunkline machines revoke attic)."],
])("trunkline machines %j fails with the remedy", async (args, words) => {
  const { machines, pair } = await siteOnCommandLine();
  await pair("attic");
  const failed = await machines(...args).catch((error: unknown) => error);
  expect(failed).toMatchObject({ message: expect.stringContaining(words), exitCode: 1 });
});

test("a change of a machine is in the log of the keys", async () => {
  const { machines, keys, issue } = await commandLine();
  await issue();
  await machines("set", "attic", "--models", "llama*");
  await machines("remove", "attic");
  const { out } = await keys("log");
  expect(out).toMatch(/machine_set +machine +attic +models llama\*\n/);
  expect(out).toMatch(/machine_removed +machine +attic +models llama\* → \*\n/);
});

test("machines pair says what is missing at a site whose gateways cannot connect machines to NATS", async () => {
  const { machines, inStore } = await siteOnCommandLine();
  await inStore(({ machines: store }) => store.noteSite({ publicUrl, takesMachines: false }));
  await expect(machines("pair", "attic")).rejects.toThrow(/TRUNKLINE_NATS_SIGNING_KEY.*trunkline nats init/);
  expect((await machines("list")).out).toBe("");
});
