import { tokenCharacters } from "./identifiers.ts";

/**
 * All subjects of the wire. They begin with `tl1.` at every version of it, so that grants stay valid: frames and job heads
 * carry the version. A subject holds only machine names, epochs and random tokens: never a model, a key or a user's text.
 *
 * A reply subject carries the machine's name, so that the broker itself keeps a machine from answering in the name of
 * another. The gateway's token is new at every boot, so that frames for an ended gateway have no subscriber.
 */

export const machineChannels = ["job", "part", "control"] as const;
export type MachineChannel = (typeof machineChannels)[number];

interface MachineBoot {
  readonly machine: string;
  readonly epoch: string;
}

export function machineSubject(target: MachineBoot, channel: MachineChannel): string {
  return `tl1.machine.${target.machine}.${target.epoch}.${channel}`;
}

/**
 * Returns an agent's subscription. It covers the agent's own epoch only: a wider one would swallow the 503 that reports
 * a dead epoch.
 */
export function machinePattern(self: MachineBoot): string {
  return `tl1.machine.${self.machine}.${self.epoch}.>`;
}

/**
 * Returns the reply subject of beats. Only the broker sends here, when a beat has no subscriber. The gateway's token
 * names the gateway that is gone.
 */
export function echoSubject(self: MachineBoot, gateway: string): string {
  return `tl1.machine.${self.machine}.${self.epoch}.echo.${gateway}`;
}

export type Addressed =
  | { readonly channel: MachineChannel }
  | { readonly channel: "echo"; readonly gateway: string }
  | { readonly channel: "unknown" };

const machinesBegin = "tl1.machine.";
const echo = "echo.";

/** Parses a subject that matches `machinePattern`. */
export function parseMachineSubject(subject: string): Addressed {
  const epochAt = subject.indexOf(".", machinesBegin.length) + 1;
  const rest = subject.slice(subject.indexOf(".", epochAt) + 1);
  if (rest === "job" || rest === "part" || rest === "control") return { channel: rest };
  return rest.startsWith(echo) ? { channel: "echo", gateway: rest.slice(echo.length) } : { channel: "unknown" };
}

/** The address of the frames of a job. */
export interface ReplyAddress {
  readonly gateway: string;
  readonly machine: string;
  readonly job: string;
}

export function replySubject(reply: ReplyAddress): string {
  return `tl1.reply.${reply.gateway}.${reply.machine}.${reply.job}`;
}

/** Returns the subject of the beats for all jobs of one gateway. `beats` is no job id: job ids have 22 characters. */
export function beatsSubject(reply: { gateway: string; machine: string }): string {
  return replySubject({ ...reply, job: "beats" });
}

export function replyPattern(gateway: string): string {
  return `tl1.reply.${gateway}.>`;
}

const repliesBegin = "tl1.reply.";
const reply = new RegExp(
  `^tl1\\.reply\\.[0-9A-Za-z]{${tokenCharacters}}\\.[a-z0-9][a-z0-9-]{0,62}\\.(?:[0-9A-Za-z]{${tokenCharacters}}|beats)$`,
);

const placed = new RegExp(`^tl1\\.placed\\.([0-9A-Za-z]{${tokenCharacters}})$`);

/** Parses a reply subject. Returns undefined when the text is not one: messages from the broker are not trusted. */
export function parseReplySubject(subject: string): ReplyAddress | undefined {
  // Every job and every frame has one: slicing is faster than capture groups.
  if (!reply.test(subject)) return undefined;
  const gatewayEnd = repliesBegin.length + tokenCharacters;
  const machineEnd = subject.indexOf(".", gatewayEnd + 1);
  return {
    gateway: subject.slice(repliesBegin.length, gatewayEnd),
    machine: subject.slice(gatewayEnd + 1, machineEnd),
    job: subject.slice(machineEnd + 1),
  };
}

/** The subjects and patterns that one connection to the broker may use. Everything else is denied. */
export interface Grants {
  readonly publish: readonly string[];
  readonly subscribe: readonly string[];
}

/** Returns the grants of a machine; `infra/nats.conf` and `trunkline nats init` give the same ones. */
export function machineGrants(machine: string): Grants {
  return {
    publish: [`tl1.reply.*.${machine}.>`, presenceSubject(machine)],
    subscribe: [`tl1.machine.${machine}.>`, presenceSubject(machine), rollcallSubject],
  };
}

/** Returns the broker grant that allows this subject, without epochs and random tokens. For messages to operators. */
export function grantFor(subject: string): string {
  const [, family, third = "", fourth = ""] = subject.split(".");
  if (family === "machine") return `tl1.machine.${third}.>`;
  if (family === "placed") return placedPattern;
  if (family === "reply") return fourth === ">" ? "tl1.reply.>" : `tl1.reply.*.${fourth}.>`;
  return subject;
}

export function presenceSubject(machine: string): string {
  return `tl1.presence.${machine}`;
}

export const presencePattern = "tl1.presence.*";

export const rollcallSubject = "tl1.rollcall";

/** Subject on which a gateway says that it opened a tunnel of this machine. */
export function tunnelSubject(machine: string): string {
  return `tl1.tunnel.${machine}`;
}

export const tunnelPattern = "tl1.tunnel.*";

/** Subject on which a gateway tells the others what it has placed on machines. */
export function placedSubject(gateway: string): string {
  return `tl1.placed.${gateway}`;
}

export const placedPattern = "tl1.placed.*";

/**
 * Subjects on which a gateway asks the others, and on which they answer one of them. The grants of `placedPattern` cover
 * both, and a gateway of an earlier version passes over them.
 */
export const gatewaysSubject = "tl1.placed.ask";

export function answersSubject(gateway: string): string {
  return `tl1.placed.to-${gateway}`;
}

/** Returns the gateway of a `placedSubject`, or undefined when the text is not one. */
export function parsePlacedSubject(subject: string): string | undefined {
  return placed.exec(subject)?.[1];
}

/** The grants of every gateway. A gateway can do without those of `placedPattern`. */
export const gatewayGrants: Grants = {
  publish: ["tl1.machine.>", rollcallSubject, tunnelPattern, placedPattern],
  subscribe: ["tl1.reply.>", presencePattern, tunnelPattern, placedPattern],
};
