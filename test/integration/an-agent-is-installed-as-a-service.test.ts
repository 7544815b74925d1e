import { execFileSync } from "node:child_process";
import {
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type Clock, systemClock } from "#shared/process/clock.ts";
import { installService, uninstallService } from "../../services/cli/service/install-service.ts";
import { type Ran, thisHost } from "../../services/cli/service/service-host.ts";
import type { HostFacts, Step } from "../../services/cli/service/service-manager.ts";
import { settingsIn } from "../../services/cli/service/service-settings.ts";
import { systemd } from "../../services/cli/service/systemd.ts";
import { linuxRoot, linuxUser } from "../harness/host-facts.ts";
import { folderOfTest } from "../harness/temporary-folder.ts";

const unit = "trunkline-agent.service";

interface Given {
  readonly environment?: Readonly<Record<string, string>> | undefined;
  /** What a command of systemd answers in place of success. */
  readonly answer?: (command: string) => Ran | undefined;
}

/** A clock on which every wait is over at once. */
function hurriedClock(): Clock {
  let nowMs = 0;
  const after: Clock["after"] = (delayMs, run) => {
    nowMs += delayMs;
    return systemClock.after(0, run);
  };
  return { ...systemClock, now: () => nowMs, after };
}

/** An account on a host whose systemd is a list of the commands that it got. Node runs for real. */
async function account() {
  const home = folderOfTest();
  const commands: string[] = [];
  const said: string[] = [];
  const clock = hurriedClock();
  const real = await thisHost({});
  const { places } = systemd({ ...linuxUser, home });

  /** Puts a package where npx would, which prints its version and knows no service. */
  const packageAt = (folder: string, version: string): string => {
    mkdirSync(join(home, folder, "lib"), { recursive: true });
    writeFileSync(join(home, folder, "package.json"), JSON.stringify({ name: "trunkline", version, type: "module" }));
    writeFileSync(join(home, folder, "lib/part.js"), `export const version = "${version}";\n`);
    const main = join(home, folder, "trunkline.js");
    writeFileSync(main, 'import { version } from "./lib/part.js";\nconsole.log(version);\n');
    return main;
  };

  const means = (script: string, version: string, { environment = {}, answer }: Given) => ({
    host: {
      facts: { ...linuxUser, home, environment },
      program: { execPath: process.execPath, script, isExecutable: false, path: undefined },
      folder: home,
      run: async (argv: Step["argv"]): Promise<Ran> => {
        const command = argv.join(" ");
        if (argv.at(-1) === "--version") return real.run(argv);
        commands.push(command);
        return answer?.(command) ?? { exitCode: 0, output: "ActiveState=active\nSubState=running" };
      },
      show: async () => 0,
    },
    clock,
    version,
    pair: async (stateDir: string) => writeFileSync(join(stateDir, "pairing.json"), "{}"),
    say: (line: string) => void said.push(line),
  });
  return {
    home,
    commands,
    said,
    places,
    packageAt,
    means,
    install: (script: string, version: string, given: Given = {}) => installService(means(script, version, given)),
    uninstall: (purge: boolean) => uninstallService(means("", "0", {}), { purge }),
    unitText: () => readFileSync(places.definition, "utf8"),
  };
}

const startLine = (text: string): string => /^ExecStart=(.*)$/m.exec(text)?.[1] ?? "";

test("a package out of npx's cache runs as a service when the cache is gone", async () => {
  const { home, install, packageAt, places, unitText, commands } = await account();
  await install(packageAt(".npm/_npx/1/node_modules/trunkline", "1.0.0"), "1.0.0");
  rmSync(join(home, ".npm"), { recursive: true });
  const [node = "", script = "", command] = startLine(unitText()).split(" ");
  expect(script.startsWith(places.programs)).toBe(true);
  expect(command).toBe("agent");
  expect(execFileSync(node, [script], { encoding: "utf8" })).toBe("1.0.0\n");
  expect(commands.slice(0, 4)).toEqual([
    "systemctl --user daemon-reload",
    `systemctl --user enable ${unit}`,
    `systemctl --user restart ${unit}`,
    "loginctl enable-linger ann",
  ]);
  expect(statSync(places.stateDir).mode & 0o777).toBe(0o700);
  expect(statSync(places.settingsFile).mode & 0o777).toBe(0o600);
});

test("a newer package takes the place of the older one, and settings stay", async () => {
  const { install, packageAt, places, unitText, commands } = await account();
  await install(packageAt("old", "1.0.0"), "1.0.0", { environment: { TRUNKLINE_MACHINE: "attic" } });
  const before = readdirSync(places.programs);
  await install(packageAt("new", "1.1.0"), "1.1.0", { environment: { TRUNKLINE_MANAGE: "all" } });
  const [copy = "", ...others] = readdirSync(places.programs);
  expect(copy).toMatch(/^1\.1\.0-/);
  expect([...others, ...before]).toEqual(before);
  expect(startLine(unitText())).toContain(copy);
  expect(settingsIn(places.settingsFile)).toEqual({
    TRUNKLINE_MACHINE: "attic",
    TRUNKLINE_MANAGE: "all",
    TRUNKLINE_STATE_DIR: places.stateDir,
  });
  expect(commands.filter((command) => command.includes("restart"))).toHaveLength(2);
});

test("a checkout of the sources runs where it lies", async () => {
  const { install, unitText, places } = await account();
  const main = join(import.meta.dirname, "../../services/cli/main.ts");
  await install(main, "0.0.0");
  expect(startLine(unitText())).toBe(`${process.execPath} ${main} agent`);
  expect(existsSync(places.programs)).toBe(false);
});

test.each([
  {
    what: "a package that does not start",
    spoil: (folder: string) => rmSync(join(folder, "lib"), { recursive: true }),
    message: /--version` does not run \(.*\), so nothing was changed/,
  },
  {
    what: "a setting that cannot work",
    environment: { TRUNKLINE_RUNTIME: "gpt" },
    message: /TRUNKLINE_RUNTIME must be one of/,
  },
])("$what leaves the running service as it was", async ({ spoil, environment, message }) => {
  const { home, install, packageAt, places, unitText, commands } = await account();
  await install(packageAt("old", "1.0.0"), "1.0.0");
  const [before, ran, programs] = [unitText(), commands.length, readdirSync(places.programs)];
  const script = packageAt("new", "1.1.0");
  spoil?.(join(home, "new"));
  await expect(install(script, "1.1.0", { environment })).rejects.toThrow(message);
  expect([unitText(), commands.length, readdirSync(places.programs)]).toEqual([before, ran, programs]);
});

test("a unit that somebody wrote by hand is not replaced", async () => {
  const { install, packageAt, places, unitText } = await account();
  mkdirSync(join(places.definition, ".."), { recursive: true });
  cpSync(join(import.meta.dirname, "../../infra/systemd/trunkline-agent.service"), places.definition);
  const before = unitText();
  await expect(install(packageAt("new", "1.0.0"), "1.0.0")).rejects.toThrow(
    "was not written by `trunkline agent install`",
  );
  expect(unitText()).toBe(before);
});

test.skipIf(process.getuid?.() !== 0)(
  "a service gets the files of its state folder, and nothing that a link there leads to",
  async () => {
    const { home, places, packageAt, install } = await account();
    mkdirSync(places.stateDir, { recursive: true });
    const owner = 61_184;
    chownSync(places.stateDir, owner, owner);
    const target = join(home, "of root alone");
    writeFileSync(target, "");
    symlinkSync(target, join(places.stateDir, "link"));
    await install(packageAt("package", "1.0.0"), "1.0.0");
    expect(statSync(join(places.stateDir, "pairing.json")).uid).toBe(owner);
    expect(statSync(target).uid).toBe(0);
  },
);

test("an agent that ends at once is told with the last line of its log", async () => {
  const { install, packageAt } = await account();
  const answer = (command: string): Ran | undefined => {
    if (command.includes("show")) return { exitCode: 0, output: "ActiveState=failed\nSubState=failed" };
    return command.startsWith("journalctl") ? { exitCode: 0, output: "one\ntrunkline: the reason" } : undefined;
  };
  const installed = install(packageAt("new", "1.0.0"), "1.0.0", { answer });
  await expect(installed).rejects.toThrow("The service is installed, and its agent ended: trunkline: the reason");
});

test("a user whose login has no systemd is told how to have one", async () => {
  const { install, packageAt } = await account();
  const answer = (): Ran => ({ exitCode: 1, output: "Failed to connect to bus: No medium found" });
  await expect(install(packageAt("new", "1.0.0"), "1.0.0", { answer })).rejects.toThrow("log in as this user itself");
});

test("a user whose services end at logout is told how to keep them", async () => {
  const { install, packageAt, said } = await account();
  const answer = (command: string): Ran | undefined =>
    command.startsWith("loginctl") ? { exitCode: 1, output: "Access denied" } : undefined;
  await install(packageAt("new", "1.0.0"), "1.0.0", { answer });
  expect(said.join("\n")).toContain("sudo loginctl enable-linger ann");
});

test("an uninstalled service leaves its pairing, and a purged one nothing", async () => {
  const { install, uninstall, packageAt, places, commands } = await account();
  await install(packageAt("new", "1.0.0"), "1.0.0");
  await uninstall(false);
  expect(commands.at(-2)).toBe(`systemctl --user disable --now ${unit}`);
  expect([places.definition, places.programs].filter((path) => existsSync(path))).toEqual([]);
  expect(existsSync(join(places.stateDir, "pairing.json"))).toBe(true);
  await uninstall(true);
  expect([places.stateDir, places.settingsFile].filter((path) => existsSync(path))).toEqual([]);
});

const analyze = findAnalyze();

describe.skipIf(analyze === undefined)("systemd-analyze", () => {
  test.each([
    // The exposure levels as `systemd-analyze security --offline=yes` of systemd 252 counts them, from 0 (sealed) to 10.
    { name: "system", facts: linuxRoot, flags: [], exposureMax: 1.7 },
    { name: "user", facts: linuxUser, flags: ["--user"], exposureMax: 6.4 },
  ])("systemd-analyze finds no fault in the $name unit, and knows its exposure", ({ facts, flags, exposureMax }) => {
    const folder = folderOfTest();
    const file = join(folder, unit);
    writeFileSync(file, unitOf(facts));
    const run = (...args: string[]): string =>
      execFileSync(analyze ?? "", args, {
        encoding: "utf8",
        env: { ...process.env, XDG_RUNTIME_DIR: folder },
        stdio: "pipe",
      });
    expect(run(...flags, "verify", file)).toBe("");
    const exposure = /exposure level for \S+: ([\d.]+)/.exec(run("security", "--offline=yes", "--no-pager", file));
    expect(Number(exposure?.[1])).toBeLessThanOrEqual(exposureMax);
  });
});

/** Prints why the tests that need it are skipped. */
function findAnalyze(): string | undefined {
  try {
    execFileSync("systemd-analyze", ["--version"]);
    return "systemd-analyze";
  } catch {
    process.stdout.write("Skipped: systemd-analyze is not here, so that no unit is verified.\n");
    return undefined;
  }
}

function unitOf(facts: HostFacts): Uint8Array {
  const manager = systemd(facts);
  const program = [process.execPath, '/srv/a b/100%/$x/"q"/trunkline.js'] as const;
  const settings = { TRUNKLINE_RUNTIME_KEY_FILE: "/etc/trunkline/runtime key" };
  return manager.definition(program, settings);
}
