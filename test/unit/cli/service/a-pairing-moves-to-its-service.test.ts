import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { newMachineKeyPair } from "#shared/protocol/pairing.ts";
import { type Pairing, pairingFile, readPairing, writePairing } from "#shared/site/pairing-file.ts";
import { assertWay } from "../../../../services/cli/commands/agent.ts";
import { folderOfTest } from "../../../harness/temporary-folder.ts";

const pairedIn = (year: number): Pairing => ({
  ...newMachineKeyPair(),
  origin: "https://models.example.org",
  join: "0123456789ab",
  site: "0123456789abcdefghijkl",
  machine: "attic",
  pairedAt: `${year}-01-01T00:00:00.000Z`,
});

function folders() {
  const root = folderOfTest();
  const [before, stateDir] = [join(root, "before"), join(root, "service")];
  const said: string[] = [];
  const bring = (settings: Readonly<Record<string, string>> = {}): void =>
    assertWay(stateDir, { before, settings, say: (line) => said.push(line) });
  return { before, stateDir, bring, said };
}

test("a pairing of the terminal moves to the service, and is in one place only", () => {
  const { before, stateDir, bring, said } = folders();
  writePairing(before, pairedIn(2026));
  bring();
  expect(readPairing(stateDir)?.pairedAt).toMatch(/^2026/);
  expect(existsSync(pairingFile(before))).toBe(false);
  expect(said.join()).toContain("The pairing as 'attic' of https://models.example.org moved");
});

test.each([
  { kept: 2025, found: 2026, wins: 2026 },
  { kept: 2026, found: 2025, wins: 2026 },
])("of a pairing of $kept and one of $found the service has that of $wins", ({ kept, found, wins }) => {
  const { before, stateDir, bring } = folders();
  writePairing(stateDir, pairedIn(kept));
  writePairing(before, pairedIn(found));
  bring();
  expect(readPairing(stateDir)?.pairedAt).toMatch(new RegExp(`^${wins}`));
});

test("a machine without a pairing and without NATS is told how to pair", () => {
  const { bring } = folders();
  expect(bring).toThrow("This machine is not paired");
  expect(() => bring({ TRUNKLINE_NATS_URL_FILE: "/etc/trunkline/nats-url" })).not.toThrow();
});
