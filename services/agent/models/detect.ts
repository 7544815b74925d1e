import { connect } from "node:net";
import { abortAfter, type Clock } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import { ollamaUrlDefault, recogniseOllama } from "../runtimes/ollama/ollama.ts";
import { openAiServerKinds } from "../runtimes/openai/openai-profile.ts";
import { openAiServerUrls, recogniseOpenAiServer } from "../runtimes/openai/recognise-openai-server.ts";
import type { Runtime, RuntimeSite } from "../runtimes/runtime.ts";

/** The result of a look: a runtime, nothing, or a server that is no runtime. */
export type LookResult = Runtime | "nothing" | "something-else";

export interface RuntimeSource {
  /** The location as messages to the operator name it: an address or a file. */
  readonly location: string;
  /** Looks at the location once. A rejection counts as nothing. */
  look(signal: AbortSignal): Promise<LookResult>;
}

/** The runtime kinds that an agent can be configured to front. `auto` means any runtime that answers. */
export const runtimeKinds = ["auto", "ollama", ...openAiServerKinds, "scripted"] as const;
type RuntimeKind = (typeof runtimeKinds)[number];

/** Timeout for recognising a server. */
export const detectMs = 500;

export interface WantedRuntimes {
  readonly kind: Exclude<RuntimeKind, "scripted">;
  /** URLs to look at instead of the usual ones. */
  readonly urls: readonly string[];
  /** Replaces the usual URLs of runtimes in tests. */
  readonly usual?: readonly string[];
  readonly apiKey?: string | undefined;
  readonly slots?: number | undefined;
  readonly clock: Clock;
  readonly log?: Pick<Log, "warn">;
}

/** Returns the locations of the runtimes to front: the configured URLs, or else the usual ones. */
export function runtimeSources(wanted: WantedRuntimes): RuntimeSource[] {
  const { kind, urls, apiKey, slots, clock, log } = wanted;
  // People copy the URL that clients use, with the version in its path.
  const site = (url: string): RuntimeSite => ({ url: url.replace(/\/v1\/?$/, ""), apiKey, slots, clock, log });
  if (urls.length > 0) return urls.map((url) => configuredPlace(site(url), kind));
  // A server at a usual location is unknown until it is recognised, and gets no API key.
  if (kind === "auto") {
    const usual = wanted.usual ?? new Set([ollamaUrlDefault, ...Object.values(openAiServerUrls)]);
    return Array.from(usual, (url) => usualPlace({ url, slots, clock, log }));
  }
  const usual = kind === "ollama" ? ollamaUrlDefault : kind === "openai" ? undefined : openAiServerUrls[kind];
  return usual === undefined ? [] : [configuredPlace(site(usual), kind)];
}

/** Returns a location that the operator named by URL or by kind: any server with a list of models is accepted. */
function configuredPlace(site: RuntimeSite, kind: WantedRuntimes["kind"]): RuntimeSource {
  return {
    location: locationOf(site),
    look: (signal) => recognise(site, kind, { allowOther: true, signal }),
  };
}

/** Returns a location where a runtime might be. Any server may listen there, so it gets as few requests as possible. */
function usualPlace(site: RuntimeSite): RuntimeSource {
  return {
    location: locationOf(site),
    async look(signal) {
      if (!(await listens(site.url, signal))) return "nothing";
      const found = await recognise(site, "auto", { allowOther: false, signal }).catch((): LookResult => {
        signal.throwIfAborted();
        return "something-else";
      });
      return found === "nothing" ? "something-else" : found;
    },
  };
}

async function recognise(
  site: RuntimeSite,
  kind: WantedRuntimes["kind"],
  options: { allowOther: boolean; signal: AbortSignal },
): Promise<LookResult> {
  const { allowOther } = options;
  using late = abortAfter(site.clock, detectMs, () => new Error(`no answer within ${detectMs} ms (detectMs)`));
  const signal = AbortSignal.any([late.signal, options.signal]);
  if (kind === "ollama") return (await recogniseOllama(site, signal)) ?? "nothing";
  const wanted = kind === "auto" ? undefined : kind;
  const found = wanted === undefined ? await recogniseOllama(site, signal) : undefined;
  return found ?? (await recogniseOpenAiServer(site, { wanted, allowOther, signal })) ?? "nothing";
}

/** True if a server listens at the URL. The check only connects, which costs the server nothing. */
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

function locationOf({ url }: RuntimeSite): string {
  return new URL(url).origin;
}

/** Returns the location of a runtime that is in this process from the start. */
export function atHand(location: string, runtime: Runtime): RuntimeSource {
  return { location, look: async () => runtime };
}
