import type { FleetWish, Way } from "../harness/start-fleet.ts";
import type { RuntimeWish } from "./runtime-of-mishaps.ts";
import type { Outcome, Script } from "./scripted-request.ts";

/**
 * Where a request is when something befalls it, each told by what can be observed and none by a wait. P1: its key is
 * proven, and its body is not there yet. P2: the job is on its way to a machine, which has not heard of it. P3: a machine
 * has accepted it, and no token has come. P4: tokens have come, and more are to come. P5: the client has the last token,
 * and the frame that ends the job is on its way. P6: nothing is under way.
 */
export type Phase = "P1" | "P2" | "P3" | "P4" | "P5" | "P6";

/** The target of a step: `machine` has the request, and `gateway` is where the request was sent. */
export type Part = "machine" | "gateway" | "nats" | "redis" | "runtime";

/** One request, or `times` of them. */
export interface Ask {
  /** How steps and outcomes call it: `it` unless said, and that is the one that the words below mean. */
  readonly as?: string;
  readonly times?: number;
  readonly whole?: boolean;
  /** Which gateway it is sent to, by place. */
  readonly at?: number;
  /** What the steps wait for after it is sent, and the way it is made to be there. */
  readonly phase?: Phase;
  readonly script?: Partial<Script>;
  readonly padding?: number;
  /** Each is sent when the one before it is over. */
  readonly inTurn?: boolean;
  /** A real time, from its sending to its end, that no scale shrinks. */
  readonly tellsWithinMs?: number;
  /** Likewise until the first of its text. */
  readonly firstTextWithinMs?: number;
}

/** What the fault suite can see of a fleet, by name. */
export type LookResult =
  | "the model is withdrawn"
  | "the model is offered"
  | "both machines serve"
  | "readyz is 503 and healthz 200"
  | "readyz is 200"
  | "the machine has ended"
  | "the gateway has ended"
  | "no machine works for the first"
  | "the first is settled as left"
  | "the crowd is turned away"
  | "the gateway holds little memory"
  | "the bad runtime is left alone"
  | "two runtimes were asked"
  | "new requests are refused"
  | "new requests are answered";

export type Step =
  | { readonly ask: readonly Ask[] }
  /** The client sends what it withheld. */
  | { readonly sendBody: string }
  | { readonly kill: Part }
  | { readonly freeze: Part }
  | { readonly thaw: Part }
  /** SIGTERM; the scenario goes on meanwhile. */
  | { readonly stop: Part }
  | { readonly restart: Part }
  /** A fault lasts for as long; a time of the wire, which shrinks with its scale. */
  | { readonly lastMs: number }
  /** A time that no scale shrinks, as of NATS itself. */
  | { readonly lastRealMs: number }
  | { readonly cut: Way; readonly of?: Part }
  | { readonly reset: Way; readonly of?: Part }
  | { readonly hold: Way; readonly of?: Part; readonly direction: "there" | "back" | "both" }
  | { readonly release: Way; readonly of?: Part }
  | {
      readonly slow: Way;
      readonly latencyMs?: number;
      readonly jitterMs?: number;
      readonly sliceBytesMax?: number;
      readonly bytesPerSecond?: number;
    }
  /** The gateway may have no more files open than it has now, or as many as ever. */
  | { readonly limitFiles: "to those open" | "as ever" }
  /** So many connections to the gateway on which nothing is sent, until they disperse. */
  | { readonly crowd: number }
  | { readonly disperse: true }
  /** A client leaves, or stops to read. */
  | { readonly leave: string; readonly how: "fin" | "reset" | "half" }
  | { readonly stopReading: string }
  | { readonly readOn: string }
  /** Waits until it is so; the time is one of the wire. */
  | { readonly see: LookResult; readonly withinMs: number }
  | { readonly seeReal: LookResult; readonly withinMs: number };

/** One fault as data: a fleet, what is asked of it, what befalls it and when, and what must come of it. */
export interface Scenario {
  /** The rows of the fault table that it stands for. */
  readonly rows: readonly number[];
  /** What holds, as a sentence: the name of the test. */
  readonly guarantee: string;
  /** Whether it is one of those that every run of the tests has. */
  readonly fast?: boolean;
  readonly fleet?: Partial<FleetWish>;
  /** What machines front in place of the demonstration, by machine. */
  readonly runtimes?: Readonly<Record<string, RuntimeWish>>;
  /** Whether it is another one for each seed, beside the token at which P4 is hit. */
  readonly chance?: boolean;
  /** The requests under way before the first step. */
  readonly asks?: readonly Ask[];
  readonly steps?: readonly Step[];
  /** How each request may end, by its name. All that has no entry must be answered. */
  readonly outcomes?: Readonly<Record<string, readonly Outcome[]>>;
  /** What stands in the head of a request's answer. */
  readonly headers?: Readonly<Record<string, Readonly<Record<string, string | RegExp>>>>;
  /** A time of the wire: from the first step that is no wait until the last request has come to its end. */
  readonly endsWithinMs?: number;
  /** The same as a real time, where it follows from a setting. */
  readonly endsWithinRealMs?: number;
  /** No text comes to a halt for longer than this, another time of the wire. */
  readonly pauseMsMax?: number;
  /** What is seen after all requests have ended. */
  readonly afterwards?: readonly Step[];
  /** Whether every machine and gateway that still runs, or was started again, serves in the end. It must unless said. */
  readonly heals?: boolean;
}
