import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { HostFacts } from "../../../../services/cli/service/service-manager.ts";
import { systemd } from "../../../../services/cli/service/systemd.ts";
import { infraFolder } from "../../../harness/infra/compose-file.ts";
import { linuxRoot, linuxUser, macUser, windowsAdministrator } from "../../../harness/host-facts.ts";
import { launchd } from "../../../../services/cli/service/launchd.ts";
import { scheduledTask } from "../../../../services/cli/service/scheduled-task.ts";

const unit = "trunkline-agent.service";
const odd = '/srv/a b/100%/$x/"q"/back\\slash/trunkline.js';

function unitOf(facts: HostFacts, settings: Readonly<Record<string, string>> = {}, script = odd): string {
  const manager = systemd(facts);
  const program = [process.execPath, script] as const;
  return Buffer.from(manager.definition(program, settings)).toString();
}

const linesOf = (text: string): Set<string> => new Set(text.split("\n").filter((line) => /^\w+=/.test(line)));

test("a system unit has every protection of the unit in infra/systemd", () => {
  const infra = readFileSync(join(infraFolder, "systemd", unit), "utf8");
  const elsewhere = /^(?:ExecStart|EnvironmentFile|Environment|LoadCredential)=/;
  const missing = linesOf(infra).difference(linesOf(unitOf(linuxRoot)));
  expect([...missing].filter((line) => !elsewhere.test(line))).toEqual([]);
});

test("a user's unit asks for no namespace, which many kernels refuse to users", () => {
  const text = unitOf(linuxUser);
  expect(text).not.toMatch(/^(?:Protect|Private|DynamicUser|StateDirectory|CapabilityBoundingSet)/m);
  expect(linesOf(text).difference(linesOf(unitOf(linuxRoot)))).toEqual(
    new Set(["EnvironmentFile=/home/ann/.config/trunkline/agent.env", "WantedBy=default.target"]),
  );
});

test("a system unit passes secrets that settings name by file as credentials", () => {
  const text = unitOf(linuxRoot, {
    TRUNKLINE_RUNTIME_KEY_FILE: "/root/100%",
    TRUNKLINE_MODELS_FILE: "/srv/models.json",
  });
  expect(text).toContain(
    "LoadCredential=TRUNKLINE_RUNTIME_KEY:/root/100%%\nUnsetEnvironment=TRUNKLINE_RUNTIME_KEY_FILE\n",
  );
  expect(text).not.toContain("TRUNKLINE_MODELS");
});

test("an agent that runs models itself gets the GPU and as much memory as they take", () => {
  const text = unitOf(linuxRoot, { TRUNKLINE_GGUF: "/srv/model.gguf" });
  expect(text).toContain("PrivateDevices=no");
  expect(text).not.toContain("MemoryMax");
});

test("folders of a user follow the XDG variables", () => {
  const environment = { XDG_DATA_HOME: "/x/data", XDG_CONFIG_HOME: "/x/config", XDG_STATE_HOME: "/x/state" };
  expect(systemd({ ...linuxUser, environment }).places).toEqual({
    programs: "/x/data/trunkline-agent",
    settingsFile: "/x/config/trunkline/agent.env",
    stateDir: "/x/state/trunkline-agent",
    definition: `/x/config/systemd/user/${unit}`,
  });
});

/** The texts of all elements of one name, in order. */
const elements = (name: string, xml: string): (string | undefined)[] =>
  [...xml.matchAll(new RegExp(`<${name}>([^<]*)</${name}>`, "g"))].map(([, text]) => text);

test("launchd starts the agent with its settings and its log, at login and whenever it ends", () => {
  const manager = launchd(macUser);
  const program = ["/opt/homebrew/bin/node", "/Users/ann/a & <b>/trunkline.js"] as const;
  const xml = Buffer.from(manager.definition(program, {})).toString();
  expect(elements("string", xml)).toEqual([
    "trunkline.agent",
    "/opt/homebrew/bin/node",
    "/Users/ann/a &amp; &lt;b&gt;/trunkline.js",
    "agent",
    "--settings",
    "/Users/ann/Library/Application Support/Trunkline/agent.env",
    "--log-file",
    "/Users/ann/Library/Logs/trunkline-agent.log",
    "/Users/ann/Library/Logs/trunkline-agent.log.crash",
  ]);
  expect(xml).toMatch(/<key>RunAtLoad<\/key>\s*<true\/>\s*<key>KeepAlive<\/key>\s*<true\/>/);
  expect(elements("integer", xml)).toEqual(["10", "40", "63"]);
});

test("launchd ends the service before it starts a new one, and waits for its last jobs", () => {
  expect(launchd(macUser).start).toEqual([
    { argv: ["launchctl", "bootout", "gui/501/trunkline.agent"], otherwise: "" },
    { argv: ["launchctl", "enable", "gui/501/trunkline.agent"] },
    {
      argv: ["launchctl", "bootstrap", "gui/501", "/Users/ann/Library/LaunchAgents/trunkline.agent.plist"],
      patienceMs: 40_000,
    },
  ]);
});

test("a service of macOS is refused to root", () => {
  expect(() => launchd({ ...macUser, isAdministrator: true })).toThrow("run this without sudo");
});

test("a task of Windows runs the agent from boot on, without a window and with the least rights", () => {
  const manager = scheduledTask(windowsAdministrator);
  const program = ["C:\\Program Files\\nodejs\\node.exe", "C:\\Users\\Ann Lee\\a&b\\trunkline.js"] as const;
  const bytes = Buffer.from(manager.definition(program, {}));
  expect([...bytes.subarray(0, 2)]).toEqual([0xff, 0xfe]);
  const xml = bytes.toString("utf16le");
  expect(elements("Command", xml)).toEqual(["C:\\Program Files\\nodejs\\node.exe"]);
  expect(elements("Arguments", xml)).toEqual([
    '"C:\\Users\\Ann Lee\\a&b\\trunkline.js" agent --settings "C:\\Users\\Ann Lee\\AppData\\Local\\Trunkline\\agent.env" --log-file "C:\\Users\\Ann Lee\\AppData\\Local\\Trunkline\\agent.log"'
      .replaceAll("&", "&amp;")
      .replaceAll('"', "&quot;"),
  ]);
  expect([elements("UserId", xml), elements("LogonType", xml), elements("RunLevel", xml)]).toEqual([
    ["DESK\\Ann"],
    ["S4U"],
    ["LeastPrivilege"],
  ]);
  expect([elements("MultipleInstancesPolicy", xml), elements("ExecutionTimeLimit", xml)]).toEqual([
    ["IgnoreNew"],
    ["PT0S"],
  ]);
});

test("a service of Windows is refused without an administrator", () => {
  expect(() => scheduledTask({ ...windowsAdministrator, isAdministrator: false })).toThrow("Run as administrator");
});
