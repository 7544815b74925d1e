/** The admin API as the console calls it: same origin, the session's cookie, and a header that no form can send. */
import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import type { z } from "zod";
import type { AdminApi } from "#shared/admin/admin-api.ts";
import { type CallName, callOf, type CallsOf, type SentParts, type SentTo } from "#shared/admin/admin-call.ts";
import type { AdminOperation } from "#shared/admin/operation.ts";
import type { ErrorBody, ManageLine, ProgressLine } from "#shared/protocol/model.ts";

/** An error of the gateway, in words for people. */
export class ApiFault extends Error {
  readonly code: string;
  readonly param: string | null;
  readonly status: number;

  constructor(status: number, { message, code, param = null }: Reason) {
    super(message);
    this.status = status;
    this.code = code ?? "unknown";
    this.param = param;
  }
}

type Reason = Pick<ErrorBody, "message"> & Partial<Pick<ErrorBody, "code" | "param">>;

/** Counts the changes that the gateway told of, and those that this page made. Answers are read anew when it grows. */
export const changes = signal(0);

/** Called when the gateway refuses the session. `session.ts` sets it. */
export const refused = { tell: (): void => undefined };

export interface Asking {
  readonly method?: string;
  readonly body?: unknown;
  readonly signal?: AbortSignal | undefined;
  /** The id of a member's own key, for which the request counts. */
  readonly key?: string | undefined;
}

/** Sends a request to the gateway. Throws an `ApiFault` for every answer that is an error. */
export async function send(url: string, { method = "GET", body, signal: until, key }: Asking = {}): Promise<Response> {
  const headers = {
    "x-trunkline-console": "1",
    ...(body === undefined ? {} : { "content-type": "application/json" }),
    ...(key === undefined ? {} : { "x-trunkline-key": key }),
  };
  const asked = { method, headers, body: body === undefined ? null : JSON.stringify(body), signal: until ?? null };
  const response = await fetch(url, asked).catch((error: unknown) => {
    if (until?.aborted) throw error;
    throw new ApiFault(0, { message: "The gateway does not answer. It may be restarting." });
  });
  if (response.ok) return response;
  const text = await response.text();
  const fault = new ApiFault(response.status, errorIn(text, response.status));
  // A key that is refused ends no session.
  if (response.status === 401 && key === undefined) refused.tell();
  throw fault;
}

function errorIn(text: string, status: number): Reason {
  try {
    return (JSON.parse(text) as { readonly error: ErrorBody }).error;
  } catch {
    return { message: `The gateway answered with the status ${status} and no reason.` };
  }
}

async function readAt<Answer>(url: string, asking: Asking): Promise<Answer> {
  return (await (await send(url, asking)).json()) as Answer;
}

/** Returns the calls of the operations of an API. */
export function callsAt<Calls extends Readonly<Record<string, AdminOperation>>>(apiPath: string) {
  type Name = keyof Calls & string;
  type Answer<Of extends Name> = z.output<Calls[Of]["answer"]>;
  const at = <Of extends Name>(name: Of, sent: SentParts<Calls[Of]>) => {
    const [method = "", path = ""] = name.split(" ");
    const call = callOf({ method, path }, sent);
    return { ...call, url: apiPath + call.path };
  };
  return {
    at,
    read: <Of extends Name>(name: Of, sent: SentParts<Calls[Of]>, until?: AbortSignal) =>
      readAt<Answer<Of>>(at(name, sent).url, { signal: until }),
    /** Makes a change, and has every shown answer read anew. */
    change: async <Of extends Name>(name: Of, sent: SentParts<Calls[Of]>): Promise<Answer<Of>> => {
      const { method, url, body = {} } = at(name, sent);
      const answer = await readAt<Answer<Of>>(url, { method, body });
      changes.value += 1;
      return answer;
    },
    /** Reads an answer, and reads it anew after each change, when `turn` changes, and while the gateway cannot give it. */
    useAnswer: <Of extends Name>(name: Of, sent: SentParts<Calls[Of]>, turn?: number | string) =>
      useRead<Answer<Of>>(at(name, sent).url, turn),
  };
}

export const { at: callAt, read, change, useAnswer } = callsAt<CallsOf<AdminApi>>("/admin/v1");

/** Makes a change for one object after another, and returns the fault of each. A fault does not stop the others. */
export async function changeEach<Of extends CallName>(
  name: Of,
  each: readonly SentTo<Of>[],
): Promise<readonly (ApiFault | undefined)[]> {
  const faults: (ApiFault | undefined)[] = [];
  for (const sent of each) {
    const { method, url, body = {} } = callAt(name, sent);
    faults.push(await send(url, { method, body }).then(() => undefined, faultOf));
  }
  changes.value += 1;
  return faults;
}

/** Runs an action on a model, which reports its progress in lines of JSON. Throws an `ApiFault` if it fails. */
export async function work(
  sent: SentTo<"POST /machines/{machine}/models/{action}">,
  { until, onLine }: { readonly until?: AbortSignal; readonly onLine?: (line: ProgressLine) => void } = {},
): Promise<void> {
  const { method, url, body } = callAt("POST /machines/{machine}/models/{action}", sent);
  const response = await send(url, { method, body, signal: until });
  for await (const text of linesOf(response)) {
    const line = JSON.parse(text) as ManageLine;
    if ("error" in line) throw new ApiFault(response.status, line.error);
    if ("done" in line) break;
    onLine?.(line);
  }
  changes.value += 1;
}

/** Yields the lines of an answer as they come. */
export async function* linesOf(response: Response): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  const reader = response.body?.getReader();
  let rest = "";
  for (;;) {
    const piece = await reader?.read();
    if (piece === undefined || piece.done) break;
    const lines = (rest + decoder.decode(piece.value, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    yield* lines.filter((line) => line !== "");
  }
  if (rest !== "") yield rest;
}

/** An answer as a page shows it: what was read last, and the fault of the latest attempt. */
export interface Shown<Answer> {
  readonly answer: Answer | undefined;
  readonly fault: ApiFault | undefined;
}

/** Pause before an answer is read again that the gateway could not give. */
const againMs = 2_000;

/** Reads an answer of any path of the gateway as `useAnswer` does, for a member's own key if one is named. */
export function useRead<Answer>(path: string, turn: number | string = 0, key?: string): Shown<Answer> {
  const [shown, setShown] = useState<Shown<Answer> & { readonly path?: string | undefined }>(none);
  const [attempt, setAttempt] = useState(0);
  const at = changes.value;
  useEffect(() => {
    const leaving = new AbortController();
    let pause: ReturnType<typeof setTimeout> | undefined;
    readAt<Answer>(path, { signal: leaving.signal, key }).then(
      (answer) => setShown({ path, answer, fault: undefined }),
      (error: unknown) => {
        if (leaving.signal.aborted) return;
        const fault = faultOf(error);
        setShown((before) => ({ path, answer: before.path === path ? before.answer : undefined, fault }));
        if (fault.status === 0 || fault.status >= 500) pause = setTimeout(() => setAttempt(attempt + 1), againMs);
      },
    );
    return () => {
      leaving.abort();
      clearTimeout(pause);
    };
  }, [path, at, turn, attempt, key]);
  return shown.path === path ? shown : none;
}

const none = { answer: undefined, fault: undefined };

export function faultOf(error: unknown): ApiFault {
  if (error instanceof ApiFault) return error;
  return new ApiFault(0, { message: error instanceof Error ? error.message : String(error) });
}
