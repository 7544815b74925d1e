import { join } from "node:path/posix";
import type { Environment } from "#shared/process/config.ts";
import type { HostFacts, ServiceManager, ServicePlaces, Step } from "./service-manager.ts";

const unit = "trunkline-agent.service";

/** Returns systemd as the manager of a user's service, or of a system service where root asks. */
export function systemd(host: HostFacts): ServiceManager {
  const isSystem = host.isAdministrator;
  const systemctl = (...words: string[]): Step["argv"] => ["systemctl", ...(isSystem ? [] : ["--user"]), ...words];
  const places = isSystem ? systemPlaces : userPlaces(host);
  return {
    places,
    definition: (program, settings) =>
      Buffer.from(unitText(program, { settings, settingsFile: places.settingsFile, isSystem })),
    start: [
      { argv: systemctl("daemon-reload") },
      { argv: systemctl("enable", unit) },
      { argv: systemctl("restart", unit) },
      ...(isSystem ? [] : [lingering(host)]),
    ],
    stop: [{ argv: systemctl("disable", "--now", unit), otherwise: "" }],
    afterRemoval: [{ argv: systemctl("daemon-reload") }],
    logs: ({ lines, follow }) => [
      "journalctl",
      ...(isSystem ? ["--unit", unit] : ["--user-unit", unit]),
      "--output=cat",
      `--lines=${lines}`,
      follow ? "--follow" : "--no-pager",
    ],
    state: { argv: systemctl("show", "--property=ActiveState,SubState", unit), ended: /=(?:failed|auto-restart)$/m },
    runs: isSystem ? "It starts at each boot." : "It starts at each boot, before anybody logs in.",
    isSealed: isSystem,
  };
}

/** Lets the services of a user run while that user is not logged in. */
function lingering({ userName }: HostFacts): Step {
  return {
    argv: ["loginctl", "enable-linger", userName],
    otherwise: `Until you run \`sudo loginctl enable-linger ${userName}\`, the service starts when you log in and ends when you log out.`,
  };
}

const systemPlaces: ServicePlaces = {
  programs: "/opt/trunkline-agent",
  settingsFile: "/etc/trunkline/agent.env",
  stateDir: "/var/lib/trunkline-agent",
  definition: `/etc/systemd/system/${unit}`,
};

function userPlaces({ home, environment }: HostFacts): ServicePlaces {
  const folder = (variable: string, usual: string): string => environment[variable] || join(home, usual);
  return {
    programs: join(folder("XDG_DATA_HOME", ".local/share"), "trunkline-agent"),
    settingsFile: join(folder("XDG_CONFIG_HOME", ".config"), "trunkline/agent.env"),
    stateDir: join(folder("XDG_STATE_HOME", ".local/state"), "trunkline-agent"),
    definition: join(folder("XDG_CONFIG_HOME", ".config"), "systemd/user", unit),
  };
}

function unitText(
  program: Step["argv"],
  { settings, settingsFile, isSystem }: { settings: Environment; settingsFile: string; isSystem: boolean },
): string {
  // GGUF files run in the agent itself: it then needs the GPU, and as much memory as the models take.
  const runsModels = Boolean(settings["TRUNKLINE_GGUF"]);
  const edit = `systemctl ${isSystem ? "" : "--user "}edit ${unit}`;
  const network = "Wants=network-online.target\nAfter=network-online.target\n";
  return `# Written by \`trunkline agent install\`, which writes it anew at each upgrade. Changes belong into a drop-in
# (${edit}), settings into ${settingsFile}.
[Unit]
Description=Trunkline agent
${isSystem ? network : ""}# The site may be away for longer than any number of tries.
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart=${[...program, "agent"].map(quoted).join(" ")}
EnvironmentFile=${escaped(settingsFile)}
Environment=NODE_ENV=production
Restart=always
RestartSec=2
# Settings that cannot work do not get better by being read again.
RestartPreventExitStatus=64 78
# Above TRUNKLINE_DRAIN_MS (30 s), so that what is under way may finish.
TimeoutStopSec=40
${runsModels ? "" : "# A leak ends this process and not its neighbours.\nMemoryMax=2G\n"}${isSystem ? sealed(settings, runsModels) : ""}
UMask=0077
LockPersonality=yes
NoNewPrivileges=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallErrorNumber=EPERM
# Not MemoryDenyWriteExecute: V8 compiles as it runs.

[Install]
WantedBy=${isSystem ? "multi-user.target" : "default.target"}
`;
}

/**
 * Returns what only a system service can have. A user's manager makes namespaces only where the kernel lets every user
 * make them, and a service that asks for one elsewhere does not start.
 */
function sealed(settings: Environment, runsModels: boolean): string {
  return `StateDirectory=trunkline-agent
StateDirectoryMode=0700
${credentials(settings)}
DynamicUser=yes
CapabilityBoundingSet=
PrivateDevices=${runsModels ? "no" : "yes"}
ProtectClock=yes
ProtectControlGroups=yes
ProtectHome=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
ProtectSystem=strict`;
}

/** Returns the secrets that settings name by file as credentials: systemd reads them as root, and the service cannot. */
function credentials(settings: Environment): string {
  return Object.entries(settings)
    .filter(([name, file]) => name !== "TRUNKLINE_MODELS_FILE" && name.endsWith("_FILE") && file)
    .map(
      ([name, file = ""]) =>
        `LoadCredential=${name.slice(0, -"_FILE".length)}:${escaped(file)}\nUnsetEnvironment=${name}\n`,
    )
    .join("");
}

/** Quotes a word of a command line. systemd expands % and $ within quotes too. */
function quoted(word: string): string {
  const plain = escaped(word).replaceAll("$", "$$$$");
  return /^[\w%$@:,./+=-]+$/.test(plain) ? plain : `"${plain.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
}

function escaped(text: string): string {
  return text.replaceAll("%", "%%");
}
