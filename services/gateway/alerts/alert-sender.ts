import type { IncomingMessage } from "node:http";
import type { AlarmCall } from "#shared/alerts/alarm.ts";
import { Fault } from "#shared/fault/fault.ts";
import type { Peppers } from "#shared/keys/pepper.ts";
import { abortAfter, type Clock } from "#shared/process/clock.ts";
import { isLinkLocal, isPublicAddress } from "#shared/process/networks.ts";
import { type AlertRecord, openAlert } from "#shared/records/alert-record.ts";
import { AddressRefused, hostOf, isListed, type Reach, sendChecked } from "../http/checked-request.ts";
import { alertMessage } from "./alert-message.ts";

/** Bounds one call of a target: the time for all of it, and the bytes of the answer that are read. */
export const alertCallMs = 5_000;
export const alertAnswerBytesMax = 64 * 1_024;

interface SenderOptions extends Reach {
  /** The hosts that may be private, without TLS and at any port (TRUNKLINE_ALERT_HOSTS). */
  readonly hosts: readonly string[];
  readonly peppers: Peppers;
  readonly clock: Pick<Clock, "after" | "wall">;
}

/** Calls alert targets. No error names more of a URL than its host, since the rest may be a secret. */
export class AlertSender {
  readonly #options: SenderOptions;

  constructor(options: SenderOptions) {
    this.#options = options;
  }

  /** Returns the reason for which this gateway does not call a URL, if there is one. */
  refusalOf(url: URL): string | undefined {
    if ((url.protocol === "https:" && url.port === "") || this.#isNamed(url)) return undefined;
    return "it must begin with https:// and name no port, unless TRUNKLINE_ALERT_HOSTS names its host";
  }

  /** Calls a target once and returns the status of its answer. Throws a `Fault` with the reason unless the target took the call. */
  async send(target: AlertRecord, call: AlarmCall, signal: AbortSignal): Promise<number> {
    const { peppers, clock, isPublic = isPublicAddress, ...reach } = this.#options;
    const opened = openAlert(target, peppers);
    if (opened === undefined)
      throw notTaken(target, "its URL is encrypted with another pepper; remove it, and add it again");
    const url = new URL(opened.url);
    const refusal = this.refusalOf(url);
    if (refusal !== undefined) throw notTaken(target, `of its URL, ${refusal}`);
    const isNamed = this.#isNamed(url);
    const refusalOf = (address: string): string | undefined => {
      if (isLinkLocal(address)) return "is link-local";
      return isNamed || isPublic(address) ? undefined : "is not public (TRUNKLINE_ALERT_HOSTS)";
    };
    const { headers, body } = alertMessage(target.format, call, { secret: opened.secret, nowMs: clock.wall() });
    using late = abortAfter(clock, alertCallMs, () =>
      notTaken(target, `no answer came within ${alertCallMs} ms (alertCallMs)`),
    );
    const until = AbortSignal.any([signal, late.signal]);
    const sent = { method: "POST", headers: { ...headers, "user-agent": "Trunkline" }, body, signal: until } as const;
    const response = await sendChecked(url, { ...reach, ...sent, refusalOf }).catch((error: unknown) => {
      until.throwIfAborted();
      throw notTaken(target, reasonOf(error));
    });
    // The status alone counts.
    await readSome(response).catch(() => undefined);
    const { statusCode: status = 0 } = response;
    if (status >= 200 && status < 300) return status;
    const redirects = status >= 300 && status < 400 ? ", and no redirect is followed" : "";
    throw notTaken(target, `it answers with the status ${status}${redirects}`);
  }

  #isNamed(url: URL): boolean {
    return isListed(hostOf(url), this.#options.hosts);
  }
}

/** Reads the beginning of an answer, so that its host sees it taken. */
async function readSome(response: IncomingMessage): Promise<void> {
  let bytes = 0;
  for await (const { byteLength } of response as AsyncIterable<Buffer>) {
    bytes += byteLength;
    if (bytes >= alertAnswerBytesMax) break;
  }
}

function notTaken({ name, host }: AlertRecord, reason: string): Fault {
  return new Fault("upstream_error", {
    message: `The alert target ${name} (${host}) did not take the call: ${reason}.`,
  });
}

/** Returns the code of an error of a connection. Its text may hold parts of the URL. */
function reasonOf(error: unknown): string {
  if (error instanceof AddressRefused) return error.message;
  return `the connection failed${error instanceof Error && "code" in error ? ` (${String(error.code)})` : ""}`;
}
