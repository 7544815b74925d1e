import { readFileSync } from "node:fs";
import { type IncomingMessage, request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { getCACertificates } from "node:tls";
import { Option } from "commander";
import { z } from "zod";
import {
  errorLine,
  linesMedia,
  manageLine,
  manageLineBytesMax,
  type ProgressLine,
  type ErrorBody,
} from "#shared/protocol/model.ts";
import { type AdminCall, callOf, type SentParts } from "#shared/admin/admin-call.ts";
import { machineOperations } from "#shared/admin/machine-operations.ts";
import type { AdminOperation } from "#shared/admin/operation.ts";
import type { Clock } from "#shared/process/clock.ts";
import { LineCutter } from "#shared/process/cut-lines.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import { onOneLine } from "#shared/process/clean-text.ts";
import { jsonIn } from "#shared/protocol/frame-payload.ts";
import { type CliContext, type JsonOption, type Workplace, readBy } from "../terminal/command-line.ts";
import { findKey, type KeyAtHand, operationsOf, siteUrl, statusOf, whyUnreachable } from "./find-gateway.ts";

export interface OperationsOptions extends JsonOption {
  readonly operationsUrl?: string;
}

export function operationsUrlOption(): Option {
  return new Option("--operations-url <url>", "the operations port of a gateway").argParser(readBy(siteUrl));
}

export const whichGatewayHelp = `
This asks the operations port of a gateway: the one that --operations-url or TRUNKLINE_OPERATIONS_URL names, otherwise
the one on this machine: at TRUNKLINE_OPERATIONS_PORT, or where a "trunkline up" on the folder TRUNKLINE_STATE_DIR
(.trunkline) listens, or at 8081. It takes an admin key: the one in TRUNKLINE_ADMIN_KEY, otherwise the one that
"trunkline up" keeps in that folder.`;

/** The gateway that the command line or the environment names, for `CliCommand.does`. */
export const atGateway: Workplace<OperationsPort> = {
  prepare: (command) => command.addOption(operationsUrlOption()).more(whichGatewayHelp),
  open: (context, given, work) => work(givenOperations(given, context)),
};

/** Returns the operations port that the command line or the environment names, with the configured admin key. */
export function givenOperations(given: OperationsOptions, { environment, clock }: CliContext): OperationsPort {
  const { url, caFile } = operationsOf(environment, given.operationsUrl);
  const ca = caFile === undefined ? undefined : readCa(caFile);
  return new OperationsPort({ url, ca, key: findKey("admin", environment), clock });
}

/** Adds the authorities in the file to Node's own, because a URL may lead to a port with a public certificate. */
function readCa(file: string): string[] {
  try {
    return [...getCACertificates("default"), readFileSync(file, "utf8")];
  } catch (error) {
    const message = `TRUNKLINE_OPERATIONS_CA: the file ${file} cannot be read; name one that this user may read.`;
    throw new StartFailure(exitCodes.config, message, { cause: error });
  }
}

const { listMachines, manageModel } = machineOperations;
const readyz = z.object({ reasons: z.array(z.string()) });
const apiPath = "/admin/v1";
/** Maximum size of an answer. No list of models is longer. */
const answerBytesMax = 64 * 1024 * 1024;

interface Dependencies {
  readonly url: string;
  readonly key: KeyAtHand;
  /** The trusted certificate authorities for HTTPS. Undefined for Node's own. */
  readonly ca?: string[] | undefined;
  readonly clock: Pick<Clock, "after">;
}

/** A client of a gateway's operations port, for the command line. Throws a StartFailure for every error. */
export class OperationsPort {
  readonly #url: string;
  readonly #dependencies: Dependencies;

  constructor(dependencies: Dependencies) {
    this.#url = dependencies.url.replace(/(?<!\/)\/+$/, "");
    this.#dependencies = dependencies;
  }

  /** Asks for what is done at once. The answer of a newer gateway may have further fields. */
  async ask<Of extends AdminOperation>(
    operation: Of,
    sent: SentParts<Of>,
    until?: AbortSignal,
  ): Promise<z.output<Of["answer"]>> {
    const late = new AbortController();
    const timer = this.#dependencies.clock.after(answerWithinMs, () => late.abort(new LateAnswer()));
    const signal = AbortSignal.any([late.signal, ...(until === undefined ? [] : [until])]);
    try {
      const answer = await this.#read(await this.#ask(callOf(operation, sent), signal));
      const { success, data, error } = operation.answer.safeParse(answer);
      if (!success && error.issues.some(({ code }) => code !== "unrecognized_keys")) throw this.#noOperationsPort();
      return (success ? data : answer) as z.output<Of["answer"]>;
    } finally {
      timer.cancel();
    }
  }

  /**
   * Runs a long operation and yields its progress; returns when it is done. Aborting the signal stops the operation.
   */
  async *work(
    action: z.output<typeof manageModel.params>["action"],
    { machine, model }: { readonly machine: string; readonly model: string },
    signal: AbortSignal,
  ): AsyncGenerator<ProgressLine> {
    const sent = { params: { machine, action }, body: { model } };
    const response = await this.#ask(callOf(manageModel, sent), signal);
    if (response.headers["content-type"] !== linesMedia) {
      response.destroy();
      throw this.#noOperationsPort();
    }
    const lines = new LineCutter(manageLineBytesMax, () => this.#noOperationsPort());
    for await (const piece of this.#piecesOf(response)) {
      for (const text of lines.take(piece)) {
        const { data: line } = manageLine.safeParse(jsonIn(text));
        if (line === undefined) throw this.#noOperationsPort();
        if ("error" in line) throw this.#failure(line.error);
        if ("done" in line) return;
        yield line;
      }
    }
    throw this.#brokenOff();
  }

  async #ask({ method, path, body }: AdminCall, signal: AbortSignal): Promise<IncomingMessage> {
    const { key, ca, clock } = this.#dependencies;
    const text = body === undefined ? undefined : JSON.stringify(body);
    const type = text === undefined ? {} : { "content-type": "application/json" };
    const headers = { authorization: `Bearer ${key.token.reveal()}`, ...type };
    const url = new URL(`${this.#url}${apiPath}${path}`);
    const sent = openRequest(url, { method, headers, body: text, signal, ca, clock });
    const response = await sent.catch((error: unknown) => {
      throw this.#unreachable(error);
    });
    if (response.statusCode === 200 || response.statusCode === 201) return response;
    const refusal = errorLine.safeParse(await this.#read(response));
    if (!refusal.success) throw this.#noOperationsPort();
    const { error } = refusal.data;
    const reasons = error.code === "auth_unavailable" ? await this.#reasons(signal) : "";
    throw this.#failure({ ...error, message: error.message + reasons }, response.statusCode);
  }

  /** Returns the gateway's own problems, to append to an error message. Empty when the gateway does not report any. */
  async #reasons(signal: AbortSignal): Promise<string> {
    try {
      const { ca, clock } = this.#dependencies;
      const asking = { method: "GET", headers: {}, signal, ca, clock };
      const response = await openRequest(new URL(`${this.#url}/readyz`), asking);
      const { reasons } = readyz.parse(await this.#read(response));
      return reasons.length === 0 ? "" : ` The gateway says: ${reasons.join("; ")}.`;
    } catch {
      return "";
    }
  }

  /** Reads an answer as JSON. Undefined when it is not JSON. */
  async #read(response: IncomingMessage): Promise<unknown> {
    const pieces: Uint8Array[] = [];
    let bytes = 0;
    for await (const piece of this.#piecesOf(response)) {
      pieces.push(piece);
      bytes += piece.byteLength;
      if (bytes > answerBytesMax) throw this.#noOperationsPort();
    }
    return jsonIn(Buffer.concat(pieces).toString());
  }

  async *#piecesOf(response: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    try {
      yield* response;
    } catch (error) {
      throw this.#brokenOff(error);
    }
  }

  #failure({ message, code }: ErrorBody, status = statusOf(code)): StartFailure {
    const line = onOneLine(message);
    const { place } = this.#dependencies.key;
    if (status === 401) return new StartFailure(exitCodes.config, `The admin key in ${place} was refused: ${line}`);
    return new StartFailure(status >= 500 ? exitCodes.unavailable : exitCodes.failed, line);
  }

  #unreachable(error: unknown): StartFailure {
    const isLate = error instanceof LateAnswer || (error instanceof Error && error.cause instanceof LateAnswer);
    const why = isLate
      ? `There is no answer at ${this.#url} within ${answerWithinMs} ms (answerWithinMs)`
      : whyUnreachable(this.#url, error);
    return new StartFailure(
      exitCodes.unavailable,
      `${why}: start a gateway or \`trunkline up\`, or name another operations port with --operations-url or TRUNKLINE_OPERATIONS_URL.`,
      { cause: error },
    );
  }

  #brokenOff(cause?: unknown): StartFailure {
    const message = `The gateway at ${this.#url} broke off before it had answered.`;
    return new StartFailure(exitCodes.unavailable, message, { cause });
  }

  #noOperationsPort(): StartFailure {
    return new StartFailure(
      exitCodes.unavailable,
      `What answers at ${this.#url} is no operations port of Trunkline; a gateway's is 8081 unless its TRUNKLINE_OPERATIONS_PORT says otherwise.`,
    );
  }
}

/** Timeout of a connection attempt. Requests other than long model actions must also be answered within it. */
const answerWithinMs = 15_000;
/** Time of silence on a connection before TCP keep-alive probes the other host. */
const keepAliveMs = 30_000;

/**
 * Sends a request and resolves with the response as soon as its status has arrived. A silent response has no timeout: a
 * model takes time to load.
 */
function openRequest(
  url: URL,
  asking: {
    readonly method: string;
    readonly headers: Readonly<Record<string, string>>;
    readonly body?: string | undefined;
    readonly signal: AbortSignal;
    readonly ca?: string[] | undefined;
    readonly clock: Pick<Clock, "after">;
  },
): Promise<IncomingMessage> {
  const { method, headers, body, signal, ca, clock } = asking;
  const send = url.protocol === "https:" ? requestHttps : requestHttp;
  return new Promise((resolve, reject) => {
    const request = send(url, { method, headers, signal, agent: false, ...(ca === undefined ? {} : { ca }) });
    const giveUp = clock.after(answerWithinMs, () => request.destroy(new LateAnswer()));
    request.setSocketKeepAlive(true, keepAliveMs);
    request.once("socket", (socket) => socket.once("connect", () => giveUp.cancel()));
    request.once("close", () => giveUp.cancel());
    request.once("response", resolve);
    request.once("error", reject);
    request.end(body);
  });
}

class LateAnswer extends Error {
  override readonly name = "LateAnswer";
}

/**
 * Returns true while an agent that was not paired has this name, as far as a gateway of the site can be asked. The
 * gateway at which a machine joins looks again.
 */
export async function isNameUsed(name: string, context: CliContext): Promise<boolean> {
  try {
    const { data } = await givenOperations({}, context).ask(listMachines, {});
    return data.some(
      ({ machine, status, pairing }) =>
        machine === name && status !== "offline" && (pairing === null || pairing === "unpaired"),
    );
  } catch (error) {
    if (error instanceof StartFailure) return false;
    throw error;
  }
}
