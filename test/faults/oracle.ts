import type { LogLine } from "../harness/trunkline-process.ts";
import type { FrameSeen, JobSeen } from "../harness/wire-watch.ts";
import type { Outcome, Script } from "./scripted-request.ts";
import { scriptedText } from "./scripted-request.ts";

/** A line of the client's ledger: what was asked, and what came of it. `ScriptedRequest` is one. */
export interface Asked {
  readonly wish: {
    readonly nonce: string;
    readonly model: string;
    readonly script: Pick<Script, "tokens">;
    readonly stream: boolean;
  };
  readonly outcome: Outcome | undefined;
  readonly text: string;
  /** What stood around the text, if that was noted. */
  readonly ids?: ReadonlySet<unknown>;
  readonly models?: ReadonlySet<unknown>;
  readonly fields?: ReadonlySet<string>;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
}

export interface Ledgers {
  readonly clients: readonly Asked[];
  /** What gateways logged that were alive at the end: of others the last lines may be missing. */
  readonly gateways: readonly LogLine[];
  /** What passed between machines and the broker, if that was watched. */
  readonly machines: readonly JobSeen[];
}

/** Placed once and failed over twice. */
const placementsMax = 3;

/**
 * Joins the ledgers of clients, gateways and machines, by nonce and request id, and says all that is wrong: every request
 * has exactly one outcome, its text is the exact answer or an exact beginning and an error, nobody's text is another's,
 * sequences have no hole, and nothing was run more often than failover allows.
 */
export function complaintsAbout({ clients, gateways, machines }: Ledgers): string[] {
  const usage = linesByRequest(gateways);
  const jobs = Map.groupBy(machines, ({ nonce }) => nonce);
  const nonces = new Set(clients.map(({ wish }) => wish.nonce));
  const strange = machines.filter(({ nonce, kind }) => kind === "chat" && (nonce === undefined || !nonces.has(nonce)));
  return [
    ...clients.flatMap((asked) =>
      [
        ...aboutText(asked),
        ...aboutFields(asked),
        ...aboutAccount(asked, usage.get(String(asked.headers["x-request-id"])) ?? [], gateways.length > 0),
        ...aboutJobs(asked, jobs.get(asked.wish.nonce) ?? []),
      ].map((complaint) => `${asked.wish.nonce}: ${complaint}`),
    ),
    ...strange.map(({ machine, job }) => `${machine} was given the job ${job} that nobody asked for`),
  ];
}

function aboutText({ wish, outcome, text }: Asked): string[] {
  const whole = scriptedText(wish.nonce, wish.script.tokens);
  if (outcome === undefined) return ["it has no outcome"];
  if (outcome === "garbled") return ["an event of it could not be read"];
  if (outcome === "truncated") return [`it was closed without an end after ${JSON.stringify(text.slice(-60))}`];
  if (outcome === "answered")
    return text === whole ? [] : [`its answer is not what it must be: ${difference(text, whole)}`];
  return whole.startsWith(text) ? [] : [`what came is no beginning of its answer: ${difference(text, whole)}`];
}

const fieldsKnown = ["id", "object", "created", "model", "choices", "usage", "system_fingerprint", "service_tier"];

/** One answer has one id, the model that was asked for, and no field that only a runtime knows. */
function aboutFields({ wish, ids = new Set(), models = new Set(), fields = new Set() }: Asked): string[] {
  const strange = [...fields].filter((field) => !fieldsKnown.includes(field));
  const others = [...models].filter((model) => model !== wish.model);
  return [
    ...(ids.size > 1 ? [`its answer has the ids ${[...ids].join(", ")}`] : []),
    ...(others.length > 0 ? [`its answer is of ${others.join(", ")}`] : []),
    ...(strange.length > 0 ? [`its answer has the fields ${strange.join(", ")}`] : []),
  ];
}

function difference(text: string, whole: string): string {
  let at = 0;
  while (at < text.length && text[at] === whole[at]) at += 1;
  const near = (of: string): string => JSON.stringify(of.slice(Math.max(0, at - 30), at + 30));
  return `at ${at} of ${whole.length} it has ${near(text)} in place of ${near(whole)}`;
}

/** The window of the demonstration models: a gateway books no longer answer, though a script may give one. */
const scriptedWindowTokens = 32_768;

/** A gateway settles every request once. */
function aboutAccount({ wish, outcome, headers }: Asked, lines: readonly LogLine[], isKept: boolean): string[] {
  if (!isKept || headers["x-request-id"] === undefined) return [];
  if (lines.length > 1) return [`it was settled ${lines.length} times`];
  const [line] = lines;
  const isRun = outcome === "answered" || outcome?.startsWith("event ");
  if (line === undefined) return isRun === true ? ["it was settled nowhere"] : [];
  const settled = line["outcome"];
  if (outcome !== "answered")
    return settled === "ok" && outcome !== "left" ? [`${outcome} was settled as a success`] : [];
  const tokens = line["completionTokens"];
  const bookable = Math.min(wish.script.tokens, scriptedWindowTokens);
  return [
    ...(settled === "ok" ? [] : [`it was answered and settled as ${String(settled)}`]),
    ...(tokens === bookable ? [] : [`${wish.script.tokens} tokens were settled as ${String(tokens)}`]),
  ];
}

function linesByRequest(lines: readonly LogLine[]): ReadonlyMap<string, LogLine[]> {
  return Map.groupBy(
    lines.filter(({ msg }) => msg === "request"),
    (line) => String(line["request"]),
  );
}

function aboutJobs({ outcome }: Asked, jobs: readonly JobSeen[]): string[] {
  const accepted = jobs.filter(({ frames }) => frames.some(({ kind }) => kind === "accept"));
  const answered = accepted.filter(({ frames }) => frames.some(({ kind }) => kind === "data"));
  return [
    ...(jobs.length > placementsMax ? [`it was placed ${jobs.length} times`] : []),
    ...(outcome === "answered" && answered.length > 0 && answered.every(hasHole) ? ["no machine sent all of it"] : []),
    ...jobs.flatMap(aboutTerminal),
  ];
}

function numbered(frames: readonly FrameSeen[]): number[] {
  const numbers = frames.filter(({ sequence }) => sequence > 0).map(({ sequence }) => sequence);
  return [...new Set(numbers)].toSorted((one, other) => one - other);
}

function hasHole({ frames }: JobSeen): boolean {
  return numbered(frames).some((sequence, place) => sequence !== place + 1);
}

/** It may be repeated until it is heard, and is always the same. */
function aboutTerminal({ job, frames }: JobSeen): string[] {
  const ends = frames.filter(({ kind }) => kind === "end" || kind === "fault");
  const different = new Set(ends.map(({ kind, sequence }) => `${kind} ${sequence}`));
  return different.size > 1 ? [`the job ${job} ended in ${[...different].join(" and ")}`] : [];
}
