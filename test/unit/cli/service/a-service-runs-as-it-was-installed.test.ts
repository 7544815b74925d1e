import { existsSync, mkdirSync, realpathSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { expect, test } from "vitest";
import { findProgram, placeProgram } from "../../../../services/cli/service/copy-program.ts";
import { folderOfTest } from "../../../harness/temporary-folder.ts";
import { agentSettingNames as names } from "../../../../services/agent/config.ts";
import { settingsIn, settingsText, settingsToKeep } from "../../../../services/cli/service/service-settings.ts";
import { newMachineKeyPair } from "#shared/protocol/pairing.ts";
import { type Pairing, pairingFile, readPairing, writePairing } from "#shared/site/pairing-file.ts";
import { assertWay } from "../../../../services/cli/commands/agent.ts";

/** A folder with a Node of one version, links to it, and a package. */
function host() {
  const root = realpathSync(folderOfTest());
  const file = (path: string, text: string): string => {
    mkdirSync(join(root, path, ".."), { recursive: true });
    writeFileSync(join(root, path), text);
    return join(root, path);
  };
  const link = (path: string, target: string): string => {
    mkdirSync(join(root, path, ".."), { recursive: true });
    symlinkSync(target, join(root, path));
    return join(root, path);
  };
  const node = file("Cellar/node/26.1.0/bin/node", "");
  file("pkg/package.json", "{}");
  const main = file("pkg/trunkline.js", "");
  return { root, node, main, file, link };
}

test("Homebrew's link is preferred to the folder of one version", () => {
  const { node, main, link, root } = host();
  const stable = link("bin/node", node);
  const path = [join(root, "empty"), join(root, "bin")].join(delimiter);
  expect(findProgram({ execPath: node, script: main, isExecutable: false, path })).toMatchObject({ node: stable });
});

test.each(["_npx/1/node_modules/.bin", "fnm_multishells/123/bin"])(
  "a link in %s does not last, so it is not used",
  (folder) => {
    const { node, main, link, root } = host();
    link(`${folder}/node`, node);
    const path = join(root, folder);
    expect(findProgram({ execPath: node, script: main, isExecutable: false, path })).toMatchObject({ node });
  },
);

test("a package is found behind the link that npm makes", () => {
  const { node, main, link, root } = host();
  const script = link("bin/trunkline", main);
  expect(findProgram({ execPath: node, script, isExecutable: false, path: "" })).toEqual({
    kind: "package",
    node,
    main,
    folder: join(root, "pkg"),
  });
});

test("a single-file executable is copied itself", () => {
  const { root, file } = host();
  const execPath = file("Downloads/trunkline", "#!");
  const program = findProgram({ execPath, script: execPath, isExecutable: true, path: "" });
  const placed = placeProgram(program, { programs: join(root, "programs"), name: "1", isSealed: true });
  expect(placed).toEqual({ argv: [join(root, "programs/1/trunkline")], folder: join(root, "programs/1") });
});

test("a system service gets a copy of a Node that is hidden from it", () => {
  const { root, node, main } = host();
  const program = { kind: "package", node, main, folder: join(root, "pkg") } as const;
  const placed = placeProgram(program, { programs: join(root, "programs"), name: "1", isSealed: true });
  expect(placed.argv).toEqual([join(root, "programs/1/node"), join(root, "programs/1/trunkline.js")]);
  const own = placeProgram(program, { programs: join(root, "programs"), name: "2", isSealed: false });
  expect(own.argv[0]).toBe(node);
});

test("a service gets a copy of a Node that npx fetched", () => {
  const { root, main, file } = host();
  const node = file("_npx/1/node_modules/node/bin/node", "");
  const program = { kind: "package", node, main, folder: join(root, "pkg") } as const;
  const placed = placeProgram(program, { programs: join(root, "programs"), name: "1", isSealed: false });
  expect(placed.argv).toEqual([join(root, "programs/1/node"), join(root, "programs/1/trunkline.js")]);
});

test("sources that are hidden from a system service are refused", () => {
  const program = { kind: "source", node: "/usr/bin/node", main: "/home/ann/trunkline/services/cli/main.ts" } as const;
  const place = () => placeProgram(program, { programs: "/nowhere", name: "1", isSealed: true });
  expect(place).toThrow("move the checkout to /opt/trunkline");
});

const kept = (environment: Readonly<Record<string, string>>): Record<string, string> =>
  settingsToKeep(environment, { names, folder: "/srv/here", platform: "linux" });

test("settings of the agent and the way through proxies are kept, with absolute paths", () => {
  const environment = {
    TRUNKLINE_MACHINE: "attic",
    TRUNKLINE_GGUF: "a.gguf, /models/b.gguf",
    TRUNKLINE_RUNTIME_KEY_FILE: "../key",
    TRUNKLINE_RUNTIME_URL: "http://127.0.0.1:8000",
    HTTPS_PROXY: "http://proxy.example:3128",
    TRUNKLINE_REDIS_URL: "redis://127.0.0.1",
    TRUNKLINE_STATE_DIR: "elsewhere",
    PATH: "/usr/bin",
  };
  expect(kept(environment)).toEqual({
    TRUNKLINE_MACHINE: "attic",
    TRUNKLINE_GGUF: "/srv/here/a.gguf,/models/b.gguf",
    TRUNKLINE_RUNTIME_KEY_FILE: "/srv/key",
    TRUNKLINE_RUNTIME_URL: "http://127.0.0.1:8000",
    HTTPS_PROXY: "http://proxy.example:3128",
  });
});

test.each([
  ["TRUNKLINE_RUNTIME_KEY", "sk-secret", "name that file in TRUNKLINE_RUNTIME_KEY_FILE"],
  ["TRUNKLINE_NATS_URL", "tls://attic:secret@broker.example", "name that file in TRUNKLINE_NATS_URL_FILE"],
  ["HTTPS_PROXY", "http://ann:secret@proxy.example:3128", "leave the password out"],
  ["TRUNKLINE_RUNTIME_URL", "http://ann:secret@127.0.0.1:8000", "leave the password out"],
])("%s with a secret is refused by name, without the secret", (name, value, remedy) => {
  const refused = expect.objectContaining({ message: expect.stringMatching(`${name} is one: .*${remedy}`) });
  expect(() => kept({ [name]: value })).toThrow(refused);
  expect(() => kept({ [name]: value })).not.toThrow("secret@");
});

test("a settings file is read as it was written, whatever its values hold", () => {
  const folder = folderOfTest();
  const file = join(folder, "agent.env");
  const settings = { A: 'x y $z #"\\n', B: "C:\\Users\\new", C: "llama*,qwen*" };
  writeFileSync(file, settingsText({ ...settings, EMPTY: "", UNSET: undefined }));
  expect(settingsIn(file)).toEqual(settings);
});

test("a value that no settings file can hold is refused", () => {
  expect(() => kept({ TRUNKLINE_RUNTIME_URL: "http://127.0.0.1/it's" })).toThrow("TRUNKLINE_RUNTIME_URL holds a quote");
});

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
  { before: 2025, found: 2026, wins: 2026 },
  { before: 2026, found: 2025, wins: 2026 },
])("of a pairing of $before and one of $found the service has that of $wins", ({ before: ofService, found, wins }) => {
  const { before, stateDir, bring } = folders();
  writePairing(stateDir, pairedIn(ofService));
  writePairing(before, pairedIn(found));
  bring();
  expect(readPairing(stateDir)?.pairedAt).toMatch(new RegExp(`^${wins}`));
});

test("a machine without a pairing and without NATS is told how to pair", () => {
  const { bring } = folders();
  expect(bring).toThrow("This machine is not paired");
  expect(() => bring({ TRUNKLINE_NATS_URL_FILE: "/etc/trunkline/nats-url" })).not.toThrow();
});
