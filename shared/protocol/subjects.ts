/**
 * Every subject of version 1 of the wire. Nothing but machine names, epochs and random tokens ever enters one: no
 * model, no key, no text of a user.
 *
 * A reply subject carries the machine's name, so that the broker itself keeps a machine from answering in the name of
 * another, and the gateway's token is new at every boot, so that frames for a gateway that is gone find nobody.
 */

export const machineChannels = ["job", "part", "control"] as const;
export type MachineChannel = (typeof machineChannels)[number];

interface Machine {
  readonly machine: string;
  readonly epoch: string;
}

export function machineSubject(target: Machine, channel: MachineChannel): string {
  return `tl1.machine.${target.machine}.${target.epoch}.${channel}`;
}

/** What an agent subscribes to: its own epoch only, or it would swallow the 503 that tells of a dead one. */
export function machinePattern(self: Machine): string {
  return `tl1.machine.${self.machine}.${self.epoch}.>`;
}

/**
 * The reply subject of beats. Nobody sends here but the broker, when it finds nobody to give a beat to; the gateway's
 * token tells which of them is gone.
 */
export function echoSubject(self: Machine, gateway: string): string {
  return `tl1.machine.${self.machine}.${self.epoch}.echo.${gateway}`;
}

export type Addressed =
  | { readonly channel: MachineChannel }
  | { readonly channel: "echo"; readonly gateway: string }
  | { readonly channel: "unknown" };

const machinesBegin = "tl1.machine.";
const channels: Readonly<Record<MachineChannel, Addressed>> = {
  job: { channel: "job" },
  part: { channel: "part" },
  control: { channel: "control" },
};

const echo = "echo.";

/** What a subject under `machinePattern` is for. */
export function parseMachineSubject(subject: string): Addressed {
  const epochAt = subject.indexOf(".", machinesBegin.length) + 1;
  const rest = subject.slice(subject.indexOf(".", epochAt) + 1);
  if (rest === "job" || rest === "part" || rest === "control") return channels[rest];
  return rest.startsWith(echo) ? { channel: "echo", gateway: rest.slice(echo.length) } : { channel: "unknown" };
}

export function replySubject(reply: { gateway: string; machine: string; job: string }): string {
  return `tl1.reply.${reply.gateway}.${reply.machine}.${reply.job}`;
}

/** Where the beats for all jobs of one gateway go; `beats` is no job id, since those are 22 characters long. */
export function beatsSubject(reply: { gateway: string; machine: string }): string {
  return replySubject({ ...reply, job: "beats" });
}

export function replyPattern(gateway: string): string {
  return `tl1.reply.${gateway}.>`;
}

const tokenCharacters = 22;
const repliesBegin = "tl1.reply.";
const reply = new RegExp(
  `^tl1\\.reply\\.[0-9A-Za-z]{${tokenCharacters}}\\.[a-z0-9][a-z0-9-]{0,62}\\.(?:[0-9A-Za-z]{${tokenCharacters}}|beats)$`,
);

/** The parts of a reply subject, or nothing when the text is none: what arrives from the broker is not trusted. */
export function parseReplySubject(subject: string): { gateway: string; machine: string; job: string } | undefined {
  // Every job and every frame comes with one: to cut the parts out takes less than to have them captured.
  if (!reply.test(subject)) return undefined;
  const gatewayEnd = repliesBegin.length + tokenCharacters;
  const machineEnd = subject.indexOf(".", gatewayEnd + 1);
  return {
    gateway: subject.slice(repliesBegin.length, gatewayEnd),
    machine: subject.slice(gatewayEnd + 1, machineEnd),
    job: subject.slice(machineEnd + 1),
  };
}

export function presenceSubject(machine: string): string {
  return `tl1.presence.${machine}`;
}

export const presencePattern = "tl1.presence.*";

export const rollcallSubject = "tl1.rollcall";
