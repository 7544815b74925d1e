import { join } from "node:path/posix";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import { type HostFacts, type ServiceManager, xmlText } from "./service-manager.ts";

const label = "trunkline.agent";
/** Above TRUNKLINE_DRAIN_MS (30 s), so that what is under way may finish. */
const stopMsMax = 40_000;

/** Returns launchd as the manager of a user's service on macOS. */
export function launchd({ home, userId, isAdministrator }: HostFacts): ServiceManager {
  if (isAdministrator) {
    throw new StartFailure(
      exitCodes.usage,
      "On macOS the agent's service belongs to a user: run this without sudo, as the user whose model server it is.",
    );
  }
  const folder = join(home, "Library/Application Support/Trunkline");
  const definition = join(home, "Library/LaunchAgents", `${label}.plist`);
  const domain = `gui/${userId}`;
  const logFile = join(home, "Library/Logs/trunkline-agent.log");
  const settingsFile = join(folder, "agent.env");
  const words = ["agent", "--settings", settingsFile, "--log-file", logFile];
  return {
    places: { programs: join(folder, "programs"), settingsFile, stateDir: join(folder, "state"), definition, logFile },
    definition: (program) => Buffer.from(propertyList([...program, ...words], logFile)),
    start: [
      { argv: ["launchctl", "bootout", `${domain}/${label}`], otherwise: "" },
      { argv: ["launchctl", "enable", `${domain}/${label}`] },
      // The agent may still finish what is under way, and launchd takes no second one meanwhile.
      { argv: ["launchctl", "bootstrap", domain, definition], patienceMs: stopMsMax },
    ],
    stop: [{ argv: ["launchctl", "bootout", `${domain}/${label}`], otherwise: "" }],
    afterRemoval: [],
    runs: "It starts when you log in: turn on automatic login on a machine that nobody sits at.",
    isSealed: false,
  };
}

function propertyList(words: readonly string[], logFile: string): string {
  return `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<!-- Written by \`trunkline agent install\`, which writes it anew at each upgrade. Settings belong into the settings file. -->
<plist version="1.0">
<dict>
  <key>Label</key>
  <string>${label}</string>
  <key>ProgramArguments</key>
  <array>
${words.map((word) => `    <string>${xmlText(word)}</string>`).join("\n")}
  </array>
  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <true/>
  <key>ThrottleInterval</key>
  <integer>10</integer>
  <key>ExitTimeOut</key>
  <integer>${stopMsMax / 1_000}</integer>
  <!-- 0077 in decimal -->
  <key>Umask</key>
  <integer>63</integer>
  <!-- A crash of Node itself, which does not reach the log. -->
  <key>StandardErrorPath</key>
  <string>${xmlText(`${logFile}.crash`)}</string>
</dict>
</plist>
`;
}
