import { join } from "node:path/win32";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import { type HostFacts, type ServiceManager, xmlText } from "./service-manager.ts";

const task = "Trunkline agent";

/**
 * Returns the Task Scheduler of Windows as a service manager. The task runs as the user who installs it, with that
 * user's least rights, from boot on and without a window. Only an administrator may create such a task.
 */
export function scheduledTask({ isAdministrator, userName, home, environment }: HostFacts): ServiceManager {
  if (!isAdministrator) {
    throw new StartFailure(
      exitCodes.usage,
      "A service of Windows takes an administrator: run this again in a terminal that was opened by «Run as administrator».",
    );
  }
  const folder = join(environment["LOCALAPPDATA"] || join(home, "AppData\\Local"), "Trunkline");
  const definition = join(folder, "agent-task.xml");
  const logFile = join(folder, "agent.log");
  const domain = environment["USERDOMAIN"];
  const user = domain ? `${domain}\\${userName}` : userName;
  const end = { argv: ["schtasks", "/End", "/TN", task], otherwise: "" } as const;
  const settingsFile = join(folder, "agent.env");
  const words = ["agent", "--settings", settingsFile, "--log-file", logFile];
  return {
    places: { programs: join(folder, "programs"), settingsFile, stateDir: join(folder, "state"), definition, logFile },
    // schtasks of older Windows takes UTF-16 with a mark of its byte order and nothing else.
    definition: ([command, ...rest]) => Buffer.from(`\uFEFF${taskText(user, command, [...rest, ...words])}`, "utf16le"),
    start: [
      end,
      { argv: ["schtasks", "/Create", "/F", "/TN", task, "/XML", definition] },
      { argv: ["schtasks", "/Run", "/TN", task] },
    ],
    stop: [end, { argv: ["schtasks", "/Delete", "/F", "/TN", task], otherwise: "" }],
    afterRemoval: [],
    runs: "It starts at each boot, before anybody logs in.",
    isSealed: false,
  };
}

/**
 * Returns the task. It is due each minute, and skipped while its process runs: the scheduler does not take an exit code
 * for a failure, so that `RestartOnFailure` would not bring back an agent that ended.
 */
function taskText(user: string, command: string, words: readonly string[]): string {
  return `<?xml version="1.0" encoding="UTF-16"?>
<!-- Written by \`trunkline agent install\`, which writes it anew at each upgrade. Settings belong into the settings file. -->
<Task version="1.4" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">
  <RegistrationInfo>
    <Description>Trunkline agent</Description>
  </RegistrationInfo>
  <Triggers>
    <BootTrigger>
      <Enabled>true</Enabled>
    </BootTrigger>
    <TimeTrigger>
      <Repetition>
        <Interval>PT1M</Interval>
        <StopAtDurationEnd>false</StopAtDurationEnd>
      </Repetition>
      <StartBoundary>2026-01-01T00:00:00</StartBoundary>
      <Enabled>true</Enabled>
    </TimeTrigger>
  </Triggers>
  <Principals>
    <Principal id="Author">
      <UserId>${xmlText(user)}</UserId>
      <LogonType>S4U</LogonType>
      <RunLevel>LeastPrivilege</RunLevel>
    </Principal>
  </Principals>
  <Settings>
    <MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>
    <DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries>
    <StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>
    <StartWhenAvailable>true</StartWhenAvailable>
    <IdleSettings>
      <StopOnIdleEnd>false</StopOnIdleEnd>
      <RestartOnIdle>false</RestartOnIdle>
    </IdleSettings>
    <Enabled>true</Enabled>
    <!-- Without an end. -->
    <ExecutionTimeLimit>PT0S</ExecutionTimeLimit>
    <!-- Normal; the scheduler's own choice is below normal. -->
    <Priority>5</Priority>
  </Settings>
  <Actions Context="Author">
    <Exec>
      <Command>${xmlText(command)}</Command>
      <Arguments>${xmlText(words.map(quoted).join(" "))}</Arguments>
    </Exec>
  </Actions>
</Task>
`;
}

/** Quotes an argument as programs of Windows read it. A backslash before a quote would escape the quote. */
function quoted(word: string): string {
  if (word !== "" && !/[\s"]/.test(word)) return word;
  return `"${word.replace(/(?<!\\)(\\+)(?="|$)/g, "$1$1").replaceAll('"', '\\"')}"`;
}
