import { randomBytes } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import { z } from "zod";
import type { Broker } from "#shared/broker/broker.ts";
import type { MachineRecord } from "#shared/records/machine-record.ts";
import type { Clock, Timer } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import type { RateBuckets } from "#shared/process/rate-buckets.ts";
import { decodeJson } from "#shared/protocol/frame-payload.ts";
import { machineKey, provesMachine, refusalText, type TunnelRefusal } from "#shared/protocol/pairing.ts";
import type { Grants } from "#shared/protocol/subjects.ts";
import type { FloodMeter } from "../fleet/flood-guard.ts";
import { FrameRate, framesPerSecondMax } from "./frame-rate.ts";
import { type Command, ProtocolParser, ProtocolViolation } from "./protocol-parser.ts";
import { Session } from "./serve-session.ts";

/** The WebSocket below a tunnel. */
export interface TunnelSocket {
  /** Bytes that this process holds because the network does not take them. */
  readonly bufferedAmount: number;
  send(bytes: Uint8Array): void;
  /** Reads nothing from the network until `resume`, so that the sender has to wait. */
  pause(): void;
  resume(): void;
  /** Closes after the bytes that were sent before. */
  close(): void;
  /** Closes at once. */
  terminate(): void;
}

interface Opening {
  readonly socket: TunnelSocket;
  readonly address: string;
  /** Ends the time in which the socket counts as unproven. */
  readonly release: () => void;
}

export interface TunnelParts {
  readonly site: string;
  /** The name of this boot of the gateway. */
  readonly gateway: string;
  /** Finds the record of the machine with this key, also of one that paired a moment ago at another gateway. */
  readonly find: (publicKey: string, address: string) => Promise<MachineRecord | undefined>;
  readonly rate: Pick<RateBuckets, "take" | "fill">;
  readonly meter: Pick<FloodMeter, "tunnelFlooded">;
  /** Opens a connection to the broker that is this machine's alone. */
  readonly brokerFor: (machine: string) => Promise<Broker>;
  readonly grantsOf: (machine: string) => Grants;
  readonly payloadBytesMax: number;
  /** The version of this gateway, which proven machines are told. */
  readonly version: string;
  readonly clock: Clock;
  readonly log: Log;
}

/** The owner of all tunnels, as one of them sees it. */
export interface TunnelOwner {
  arrived(tunnel: Tunnel): void;
  /** Called once when the machine behind a tunnel is proven. */
  opened(tunnel: Tunnel, machine: MachineRecord): void;
  /** Called once for each tunnel. `reason` is undefined when the agent closed it. */
  closed(tunnel: Tunnel, reason: string | undefined): void;
}

/** Time from the upgrade until the machine is proven. */
export const connectWaitMs = 5_000;
/** Bytes that a socket may send before its machine is proven. */
export const unprovenBytesMax = 8 * 1024;
/** Bytes that may wait for one machine that does not read. `max_pending` of infra/nats.conf is the same. */
export const pendingBytesMax = 32 * 1024 * 1024;
/** Time within which a command, or a WebSocket message, is whole. An agent announces itself each second. */
export const commandWaitMs = 60_000;
/**
 * Commands and messages together, and bytes, of one machine that are carried out at once. Then the broker takes them, and
 * other work of this process has its turn, before more is read.
 */
export const commandsAtOnceMax = 1_024;
export const bytesAtOnceMax = 1024 * 1024;
/**
 * Silence after which a tunnel is pinged, and after which it is closed. TCP repeats a lost packet after up to 3 s, and
 * an outage of 2 s must not cost the connection.
 */
const pingAfterMs = 2_000;
export const silenceMs = 8_000;

/** Version of NATS whose protocol is spoken here; the client library wants one. */
const protocolVersion = "2.10.0";

const connectRequest = z.object({
  nkey: machineKey,
  sig: z.string().max(256),
  boot: z.string().regex(/^[0-9A-Za-z]{22}$/),
  /** True for a look that proves the machine and opens no tunnel: the agent that runs keeps its own. */
  check: z.boolean().optional(),
});

let tunnelsOpened = 0;

/** One connection of an agent: it is greeted, its machine is proven, then a session serves it until it closes. */
export class Tunnel {
  /** The machine's record, as it was when the machine was proven. */
  machine: MachineRecord | undefined;
  /** Identifies the process at the other end. */
  boot = "";
  /** True if the machine was asked to connect anew under another name. */
  isRenamed = false;
  /** The address of the client, as far as trusted proxies tell it. */
  readonly address: string;
  readonly #parts: TunnelParts;
  readonly #owner: TunnelOwner;
  readonly #socket: TunnelSocket;
  readonly #release: () => void;
  readonly #parser = new ProtocolParser();
  readonly #nonce = randomBytes(24).toString("base64url");
  readonly #id: number;
  readonly #connectTimer: Timer;
  #stage: "greeted" | "proving" | "open" | "closed" = "greeted";
  #session: Session | undefined;
  #isResting = false;
  #commandsAtOnce = 0;
  #bytesAtOnce = 0;
  #outgoing: Uint8Array[] = [];
  #payloadBytesMax: number;
  readonly #frames = new FrameRate();
  #commandAtMs: number;
  #heardAtMs: number;
  #receivedBytes = 0;
  #pingedAtMs = -Infinity;

  constructor({ socket, address, release }: Opening, parts: TunnelParts, owner: TunnelOwner) {
    this.#socket = socket;
    this.#release = release;
    this.address = address;
    this.#parts = parts;
    this.#owner = owner;
    this.#id = tunnelsOpened += 1;
    this.#payloadBytesMax = parts.payloadBytesMax;
    this.#heardAtMs = this.#commandAtMs = parts.clock.now();
    this.#connectTimer = parts.clock.after(connectWaitMs, () => {
      this.#fail(`Authentication Timeout (${connectWaitMs} ms)`);
    });
    owner.arrived(this);
    this.#tellInfo({ nonce: this.#nonce });
  }

  get isOpen(): boolean {
    return this.#stage === "open";
  }

  /** Takes bytes from the socket. */
  receive(bytes: Buffer): void {
    if (this.#stage === "closed") return;
    this.#parser.push(bytes);
    this.#bytesAtOnce += bytes.byteLength;
    this.#commandsAtOnce += 1;
    this.#work();
  }

  /** Checks the bytes of the socket before their frames are read. They may be parts of a message. */
  bytesArrived(bytes: Uint8Array): void {
    this.#receivedBytes += bytes.byteLength;
    this.#heardAtMs = this.#parts.clock.now();
    if (this.#frames.take(this.#heardAtMs, this.#frames.count(bytes)) > 0) this.#flooded();
    else if (this.#stage !== "open" && this.#receivedBytes > unprovenBytesMax)
      this.#fail(`Too many bytes before CONNECT (${unprovenBytesMax})`);
  }

  /** Closes the tunnel and reads no more of it: an agent that floods does not wait for the close. */
  #flooded(): void {
    this.#socket.pause();
    const { name, publicKey = "" } = this.machine ?? {};
    if (this.#stage === "open" && name !== undefined) {
      this.#parts.rate.fill(publicKey);
      this.#parts.meter.tunnelFlooded(name);
    }
    this.#fail(`Maximum Frames And Commands Exceeded (${framesPerSecondMax} a second, framesPerSecondMax)`);
  }

  /** Closes the tunnel and tells the machine why. */
  refuse(refusal: TunnelRefusal, retryMs?: number): void {
    this.#fail(refusalText(refusal, retryMs));
  }

  /** Closes the tunnel, so that the agent connects again. */
  end(reason: string): void {
    this.#close("end", reason);
  }

  /** Asks the agent to connect anew, to another gateway. */
  move(): void {
    if (this.#stage === "open") this.#tellInfo({ ldm: true });
  }

  /** Asks the machine to connect anew under another name. This tunnel goes on under the old one meanwhile. */
  rename(machine: string): void {
    this.isRenamed = true;
    if (this.#stage === "open") this.#tellInfo({ ldm: true, machine });
  }

  /** Takes note that the socket has closed. */
  socketClosed(): void {
    this.#close("cut", undefined);
  }

  /**
   * Pings a silent machine, and closes a tunnel that stays silent or ends no command. `restart` forgives the time until
   * now.
   */
  watchSilence({ restart }: { readonly restart: boolean }): void {
    const nowMs = this.#parts.clock.now();
    if (restart) this.#heardAtMs = this.#commandAtMs = nowMs;
    if (nowMs - this.#commandAtMs >= commandWaitMs) {
      this.#fail(`No Whole Command (in ${commandWaitMs} ms, commandWaitMs)`);
    } else if (nowMs - this.#heardAtMs >= silenceMs) {
      this.#close("cut", `the machine was silent for ${silenceMs} ms (silenceMs)`);
    } else if (nowMs - this.#heardAtMs >= pingAfterMs && nowMs - this.#pingedAtMs >= pingAfterMs) {
      this.#pingedAtMs = nowMs;
      this.#write("PING\r\n");
    }
  }

  #work(): void {
    try {
      while (!this.#isResting && (this.#stage === "greeted" || this.#stage === "open")) {
        if (this.#commandsAtOnce >= commandsAtOnceMax || this.#bytesAtOnce >= bytesAtOnceMax) {
          void this.#rest();
          return;
        }
        const command = this.#parser.next();
        if (command === undefined) return;
        this.#commandsAtOnce += 1;
        this.#commandAtMs = this.#parts.clock.now();
        if (this.#frames.take(this.#commandAtMs) > 0) return this.#flooded();
        if (this.#stage === "greeted") this.#greeted(command);
        else this.#session?.carryOut(command);
      }
    } catch (error) {
      if (error instanceof ProtocolViolation) this.#fail(error.message);
      else this.#failInside(error);
    }
  }

  async #rest(): Promise<void> {
    this.#isResting = true;
    this.#socket.pause();
    await this.#session?.flush();
    await setImmediate();
    this.#isResting = false;
    this.#commandsAtOnce = this.#bytesAtOnce = 0;
    this.#socket.resume();
    this.#work();
  }

  #greeted(command: Command): void {
    const asked = command.op === "connect" ? decodeJson(connectRequest, Buffer.from(command.json)) : undefined;
    if (asked === undefined) throw new ProtocolViolation("Authorization Violation: wrong_proof");
    this.#stage = "proving";
    this.#prove(asked).catch((error: unknown) => this.#failInside(error));
  }

  async #prove({ nkey, sig, boot, check }: z.infer<typeof connectRequest>): Promise<void> {
    const { site, version, find, rate, brokerFor, grantsOf, clock, log } = this.#parts;
    const machine = await find(nkey, this.address);
    if (machine === undefined) return this.refuse("machine_unknown");
    const signed = { purpose: "connect", site, challenge: this.#nonce } as const;
    if (!provesMachine(nkey, sig, signed)) return this.refuse("wrong_proof");
    if (machine.revokedAt !== undefined) return this.refuse("machine_revoked");
    const waitMs = rate.take(nkey);
    if (waitMs > 0) return this.refuse("too_often", waitMs);
    if (check === true) {
      this.#tellInfo({ machine: machine.name, trunkline: version, cordon: machine.cordon?.reason });
      return this.#close("end", undefined);
    }
    const broker = await brokerFor(machine.name);
    if (this.#stage !== "proving") return broker.close();
    this.#connectTimer.cancel();
    this.machine = machine;
    this.boot = boot;
    this.#stage = "open";
    this.#session = new Session({
      machine: machine.name,
      broker,
      grants: grantsOf(machine.name),
      write: (...pieces) => this.#write(...pieces),
      onLost: () => this.end("the machine's connection to the broker is lost"),
      clock,
      log,
    });
    this.#parser.payloadBytesMax = this.#payloadBytesMax = broker.payloadBytesMax;
    this.#release();
    this.#owner.opened(this, machine);
    this.#tellInfo({});
    this.#work();
  }

  #tellInfo(more: Readonly<Record<string, string | true | undefined>>): void {
    const { site, gateway } = this.#parts;
    const info = {
      server_id: gateway,
      client_id: this.#id,
      version: protocolVersion,
      proto: 1,
      headers: true,
      auth_required: true,
      max_payload: this.#payloadBytesMax,
      site,
      machine: this.machine?.name,
      ...more,
    };
    this.#write(`INFO ${JSON.stringify(info)}\r\n`);
  }

  #fail(text: string): void {
    this.#write(`-ERR '${text}'\r\n`);
    this.end(text);
  }

  #failInside(error: unknown): void {
    this.#parts.log.warn({ err: error, machine: this.machine?.name }, "a tunnel failed");
    this.refuse("unavailable");
  }

  /** Sends all pieces of one turn of the event loop in one message. */
  #write(...pieces: readonly (string | Uint8Array)[]): void {
    if (this.#stage === "closed") return;
    if (this.#outgoing.length === 0) process.nextTick(() => this.#send());
    for (const piece of pieces) this.#outgoing.push(typeof piece === "string" ? Buffer.from(piece) : piece);
  }

  #send(): void {
    const pieces = this.#outgoing;
    if (pieces.length === 0) return;
    this.#outgoing = [];
    this.#socket.send(Buffer.concat(pieces));
    if (this.#socket.bufferedAmount <= pendingBytesMax) return;
    this.#close("cut", `the machine read too slowly: ${pendingBytesMax} bytes wait for it (pendingBytesMax)`);
  }

  #close(how: "end" | "cut", reason: string | undefined): void {
    if (this.#stage === "closed") return;
    this.#stage = "closed";
    if (how === "end") this.#send();
    this.#connectTimer.cancel();
    void this.#session?.end();
    this.#release();
    this.#owner.closed(this, reason);
    if (how === "end") this.#socket.close();
    else this.#socket.terminate();
  }
}
