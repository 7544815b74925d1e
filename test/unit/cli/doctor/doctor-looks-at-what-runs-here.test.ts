import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { sideOf } from "../../../../services/cli/doctor/doctor.ts";
import { folderOfTest } from "../../../harness/temporary-folder.ts";

const addresses = ["addresses.json", JSON.stringify({ baseUrl: "http://127.0.0.1:9/v1" })] as const;
const pairing = ["pairing.json", "{}"] as const;
const store = ["trunkline.db", ""] as const;

type Files = readonly (readonly [name: string, text: string])[];

/** Makes the state folder of a command and that of an installed agent. */
function host(own: Files, agents: Files) {
  const folder = folderOfTest();
  const environments = [own, agents].map((files, at) => {
    const stateDir = join(folder, String(at));
    mkdirSync(stateDir);
    for (const [name, text] of files) writeFileSync(join(stateDir, name), text);
    return { TRUNKLINE_STATE_DIR: stateDir };
  });
  return { own: environments[0] ?? {}, agent: environments[1] ?? {} };
}

const cases: readonly (readonly [what: string, side: string, own: Files, agents: Files])[] = [
  ["a site that runs here", "site", [addresses, store], [pairing]],
  ["a machine whose agent is installed, beside a site that does not run", "machine", [store], [pairing]],
  ["a machine that is paired in this folder", "machine", [pairing], []],
  ["a site that does not run, where no machine is paired", "site", [store], []],
  ["a machine, where there is nothing yet", "machine", [], []],
];
test.each(cases)("doctor looks at %s", (_, side, files, agents) => {
  const { own, agent } = host(files, agents);
  expect(sideOf(own, agent)).toBe(side);
});
