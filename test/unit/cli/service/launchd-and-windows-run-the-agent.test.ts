import { expect, test } from "vitest";
import { launchd } from "../../../../services/cli/service/launchd.ts";
import { scheduledTask } from "../../../../services/cli/service/scheduled-task.ts";
import { macUser, windowsAdministrator } from "../../../harness/host-facts.ts";

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
