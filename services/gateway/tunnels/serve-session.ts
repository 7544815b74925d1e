import type { Broker, BrokerMessage, Subscription } from "#shared/broker/broker.ts";
import { subjectMatches } from "#shared/broker/broker.ts";
import { LogThrottle, type Log } from "#shared/process/log.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Grants } from "#shared/protocol/subjects.ts";
import { type Command, ProtocolViolation, type Published } from "./protocol-parser.ts";

/** An agent has four subscriptions. */
const subscriptionsMax = 8;
/** Pings without an answer yet. Each costs a round trip to the broker. */
const pingsMax = 64;

interface SessionParts {
  readonly machine: string;
  /** The connection of this machine alone. The session closes it at its end. */
  readonly broker: Broker;
  readonly grants: Grants;
  /** Sends pieces of the protocol to the machine, together with all others of this turn of the event loop. */
  readonly write: (...pieces: readonly (string | Uint8Array)[]) => void;
  /** Called once when the broker no longer serves this connection. */
  readonly onLost: () => void;
  readonly clock: Pick<Clock, "now">;
  readonly log: Pick<Log, "warn">;
}

/** Serves the commands of one proven machine with a connection to the broker, within the machine's grants. */
export class Session {
  readonly #parts: SessionParts;
  readonly #subscriptions = new Map<string, Subscription>();
  readonly #brokerWatch: Subscription;
  readonly #throttle: LogThrottle;
  #pings = 0;
  #ended = false;

  constructor(parts: SessionParts) {
    this.#parts = parts;
    this.#throttle = new LogThrottle(parts.clock);
    this.#brokerWatch = parts.broker.onChange(() => parts.onLost());
  }

  /** Carries out a command, or throws a `ProtocolViolation`, after which the connection ends. */
  carryOut(command: Command): void {
    switch (command.op) {
      case "publish":
        this.#publish(command.message);
        return;
      case "subscribe":
        this.#subscribe(command.pattern, command.sid);
        return;
      case "unsubscribe":
        this.#subscriptions.get(command.sid)?.end();
        this.#subscriptions.delete(command.sid);
        return;
      case "ping":
        this.#pings += 1;
        if (this.#pings > pingsMax) throw new ProtocolViolation(`Maximum Pings Exceeded (${pingsMax})`);
        void this.#pong();
        return;
      case "pong":
        return;
      case "connect":
        throw new ProtocolViolation("CONNECT comes once");
    }
  }

  async end(): Promise<void> {
    if (this.#ended) return;
    this.#ended = true;
    this.#brokerWatch.end();
    // At once, so that senders learn that nobody is there.
    for (const subscription of this.#subscriptions.values()) subscription.end();
    this.#subscriptions.clear();
    await this.#parts.broker.close();
  }

  #publish({ subject, reply, headers, data }: Published): void {
    const { broker, grants } = this.#parts;
    if (!isGranted(grants.publish, subject)) {
      this.#deny("Publish", subject);
      return;
    }
    // The broker itself sends to a reply subject, so a machine may name only its own.
    if (reply !== undefined && !isGranted(grants.subscribe, reply)) {
      this.#deny("Publish", reply);
      return;
    }
    const outcome = broker.publish(subject, data, { ...(reply && { reply }), ...(headers && { headers }) });
    if (outcome === "disconnected") this.#parts.onLost();
  }

  #subscribe(pattern: string, sid: string): void {
    const { broker, grants } = this.#parts;
    if (!isGranted(grants.subscribe, pattern)) {
      this.#deny("Subscription", pattern);
      return;
    }
    if (this.#subscriptions.has(sid)) throw new ProtocolViolation("Parser Error: this subscription exists");
    if (this.#subscriptions.size >= subscriptionsMax) {
      throw new ProtocolViolation(`Maximum Subscriptions Exceeded (${subscriptionsMax})`);
    }
    const subscription = broker.subscribe(pattern, (message) => this.#parts.write(...messageText(sid, message)));
    this.#subscriptions.set(sid, subscription);
  }

  /** Resolves when the broker has received all that came before, or is lost. */
  async flush(): Promise<void> {
    const { broker, onLost } = this.#parts;
    await broker.flush().catch(onLost);
  }

  /** Answers a ping when the broker has received all that came before it. */
  async #pong(): Promise<void> {
    await this.flush();
    this.#pings -= 1;
    if (!this.#ended) this.#parts.write("PONG\r\n");
  }

  #deny(what: "Publish" | "Subscription", subject: string): void {
    const { machine, write, log } = this.#parts;
    write(`-ERR 'Permissions Violation for ${what} to "${subject}"'\r\n`);
    if (this.#throttle.isDue(what)) log.warn({ machine, subject }, `a machine was denied: ${what} beyond its grants`);
  }
}

/** Returns true if a grant covers the subject, or everything that the pattern matches. */
function isGranted(grants: readonly string[], subject: string): boolean {
  return grants.some((grant) => subjectMatches(grant, subject) && (grant.endsWith(">") || !subject.endsWith(">")));
}

const lineEnd = "\r\n";
const nobodyHeaders = "NATS/1.0 503\r\n\r\n";

function messageText(
  sid: string,
  { subject, reply, headers, noResponders, data }: BrokerMessage,
): readonly (string | Uint8Array)[] {
  const head = reply === undefined ? `${subject} ${sid}` : `${subject} ${sid} ${reply}`;
  const block = noResponders ? nobodyHeaders : headers && headersText(headers);
  if (block === undefined) return [`MSG ${head} ${data.byteLength}\r\n`, data, lineEnd];
  const bytes = Buffer.byteLength(block);
  return [`HMSG ${head} ${bytes} ${bytes + data.byteLength}\r\n`, block, data, lineEnd];
}

function headersText(headers: Readonly<Record<string, string>>): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `NATS/1.0\r\n${lines.join("")}\r\n`;
}
