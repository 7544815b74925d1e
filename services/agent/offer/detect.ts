import { connect } from "node:net";
import type { Clock } from "#shared/process/clock.ts";
import { ollamaUrlDefault, recogniseOllama } from "../runtimes/ollama/ollama.ts";
import {
  openAiServerKinds,
  openAiServerUrls,
  recogniseOpenAiServer,
  type OpenAiServerKind,
} from "../runtimes/openai/recognise-openai-server.ts";
import type { Runtime } from "../runtimes/runtime.ts";
import type { RuntimeSite } from "../runtimes/runtime-site.ts";
import type { RuntimeSource, Sight } from "./runtime-source.ts";

/** What an agent can be told to front. `auto` is whatever answers. */
export const runtimeKinds = ["auto", "ollama", ...openAiServerKinds, "scripted"] as const;
export type RuntimeKind = (typeof runtimeKinds)[number];

/** How long something may take to say what it is. */
export const detectMs = 500;

export interface Wanted {
  readonly kind: Exclude<RuntimeKind, "scripted">;
  /** Where to look, instead of where runtimes usually are. */
  readonly urls: readonly string[];
  /** Where runtimes usually are, for tests. */
  readonly usual?: readonly string[];
  readonly apiKey?: string | undefined;
  readonly slots?: number | undefined;
  readonly clock: Clock;
}

/** Where the runtimes may be that an agent is to front: where the operator says, or else where they usually are. */
export function runtimeSources(wanted: Wanted): RuntimeSource[] {
  const { kind, urls, apiKey, slots, clock } = wanted;
  const site = (url: string): RuntimeSite => ({ url: withoutVersion(url), apiKey, slots, clock });
  if (urls.length > 0) return urls.map((url) => named(site(url), kind));
  // Whatever listens at a usual place is a stranger until it is recognised, and is shown no key.
  if (kind === "auto") return (wanted.usual ?? usualUrls()).map((url) => unasked({ url, slots, clock }));
  const usual = kind === "ollama" ? ollamaUrlDefault : kind === "openai" ? undefined : openAiServerUrls[kind];
  return usual === undefined ? [] : [named(site(usual), kind)];
}

/** A place that the operator named, by address or by kind: any server with a list of models will do. */
function named(site: RuntimeSite, kind: Wanted["kind"]): RuntimeSource {
  return {
    place: placeOf(site),
    look: (signal) =>
      within(site.clock, signal, (either) => recognise(site, kind, { allowOther: true, signal: either })),
  };
}

/** A place where a runtime might be. What listens there may be anything, and is asked as little as possible. */
function unasked(site: RuntimeSite): RuntimeSource {
  return {
    place: placeOf(site),
    async look(signal) {
      if (!(await listens(site.url, signal))) return "nothing";
      const found = await within(site.clock, signal, (either) =>
        recognise(site, "auto", { allowOther: false, signal: either }),
      ).catch((): Sight => {
        signal.throwIfAborted();
        return "something-else";
      });
      return found === "nothing" ? "something-else" : found;
    },
  };
}

async function recognise(
  site: RuntimeSite,
  kind: Wanted["kind"],
  options: { allowOther: boolean; signal: AbortSignal },
): Promise<Sight> {
  const { allowOther, signal } = options;
  if (kind === "ollama") return (await recogniseOllama(site, signal)) ?? "nothing";
  const wanted: OpenAiServerKind | undefined = kind === "auto" ? undefined : kind;
  const found = wanted === undefined ? await recogniseOllama(site, signal) : undefined;
  const other = { ...(wanted !== undefined && { wanted }), allowOther, signal };
  return found ?? (await recogniseOpenAiServer(site, other)) ?? "nothing";
}

async function within(clock: Clock, signal: AbortSignal, ask: (signal: AbortSignal) => Promise<Sight>): Promise<Sight> {
  const deadline = new AbortController();
  const timer = clock.after(detectMs, () => deadline.abort(new Error(`no answer within ${detectMs} ms (detectMs)`)));
  try {
    return await ask(AbortSignal.any([deadline.signal, signal]));
  } finally {
    timer.cancel();
  }
}

/** Whether anything listens at all, which costs whatever it is nothing. */
function listens(url: string, signal: AbortSignal): Promise<boolean> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const socket = connect({ host: hostname, port: Number(port), signal });
    const tell = (answer: boolean): void => {
      socket.destroy();
      resolve(answer);
    };
    socket.once("connect", () => tell(true));
    socket.once("error", () => tell(false));
  });
}

function usualUrls(): string[] {
  return [...new Set<string>([ollamaUrlDefault, ...Object.values(openAiServerUrls)])];
}

/** People copy the address that clients use, with its version. */
function withoutVersion(url: string): string {
  return url.replace(/\/v1\/?$/, "");
}

function placeOf({ url }: RuntimeSite): string {
  return new URL(url).origin;
}

/** A runtime that is in this process from the start. */
export function atHand(place: string, runtime: Runtime): RuntimeSource {
  return { place, look: async () => runtime };
}
