import { serverOfTest } from "./server-of-test.ts";

type Value = string | number | boolean | readonly Value[] | undefined;

/** A span as the receiver read it. Ids are hex; times are nanoseconds since 1970. */
export interface ReadSpan {
  readonly traceId: string;
  readonly spanId: string;
  /** Empty for the first span of a trace. */
  readonly parentId: string;
  readonly name: string;
  readonly kind: number;
  readonly startedAt: bigint;
  readonly endedAt: bigint;
  readonly attributes: Readonly<Record<string, Value>>;
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly hasFailed: boolean;
  readonly service: Readonly<Record<string, Value>>;
  readonly schemaUrl: string;
}

/** A collector of a test: it takes OTLP over HTTP, and reads the protobuf itself. */
export class OtlpReceiver {
  readonly spans: ReadSpan[] = [];
  readonly calls: { readonly headers: NodeJS.Dict<string | string[]>; readonly body: Buffer }[] = [];
  url = "";

  /** Starts one that stops with the test that runs. */
  static async start(): Promise<OtlpReceiver> {
    const receiver = new OtlpReceiver();
    receiver.url = await serverOfTest((request, response) => {
      const pieces: Buffer[] = [];
      request.on("data", (piece: Buffer) => pieces.push(piece));
      request.on("end", () => {
        const body = Buffer.concat(pieces);
        receiver.calls.push({ headers: request.headers, body });
        if (request.url === "/v1/traces") receiver.spans.push(...readSpans(body));
        response.writeHead(request.url === "/v1/traces" ? 200 : 404).end();
      });
    });
    return receiver;
  }

  named(name: string): readonly ReadSpan[] {
    return this.spans.filter((span) => span.name === name);
  }
}

function readSpans(request: Buffer): ReadSpan[] {
  return messages(request, 1).flatMap((ofResource) => {
    const service = messages(ofResource, 1).map((resource) => attributesOf(resource, 1))[0] ?? {};
    return messages(ofResource, 2).flatMap((ofScope) =>
      messages(ofScope, 2).map((span) => ({ ...readSpan(span), service, schemaUrl: text(ofScope, 3) })),
    );
  });
}

function readSpan(span: Buffer) {
  return {
    traceId: hex(span, 1),
    spanId: hex(span, 2),
    parentId: hex(span, 4),
    name: text(span, 5),
    kind: Number(fields(span).get(6)?.[0] ?? 0),
    startedAt: fields(span).get(7)?.[0] as bigint,
    endedAt: fields(span).get(8)?.[0] as bigint,
    attributes: attributesOf(span, 9),
    links: messages(span, 13).map((link) => ({ traceId: hex(link, 1), spanId: hex(link, 2) })),
    hasFailed: messages(span, 15).some((status) => fields(status).get(3)?.[0] === 2n),
  };
}

function attributesOf(message: Buffer, field: number): Record<string, Value> {
  return Object.fromEntries(messages(message, field).map((pair) => [text(pair, 1), anyValue(messages(pair, 2)[0])]));
}

function anyValue(value: Buffer | undefined): Value {
  if (value === undefined) return undefined;
  const [entry] = fields(value);
  const [kind, [first] = []] = entry ?? [];
  if (kind === 1) return String(first);
  if (kind === 2) return first === 1n;
  if (kind === 3) return Number(first);
  if (kind === 4)
    return (() => {
      const bytes = Buffer.alloc(8);
      bytes.writeBigUInt64LE(first as bigint);
      return bytes.readDoubleLE();
    })();
  return messages(first as Buffer, 1).map(anyValue);
}

/** Reads the fields of a protobuf message by their numbers: texts and messages as bytes, all numbers as integers. */
function fields(message: Buffer): Map<number, (bigint | Buffer)[]> {
  const found = new Map<number, (bigint | Buffer)[]>();
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = BigInt(message.readUInt8(at++));
      value |= (byte & 0x7fn) << shift;
      if (byte < 0x80n) return value;
    }
  };
  const read: Readonly<Record<number, () => bigint | Buffer>> = {
    0: varint,
    1: () => message.readBigUInt64LE((at += 8) - 8),
    2: () => {
      const length = Number(varint());
      return message.subarray((at += length) - length, at);
    },
    5: () => BigInt(message.readUInt32LE((at += 4) - 4)),
  };
  while (at < message.length) {
    const tag = Number(varint());
    const value = read[tag & 7]?.();
    if (value === undefined) throw new Error(`no field of protobuf has the wire type ${tag & 7}`);
    found.set(tag >> 3, [...(found.get(tag >> 3) ?? []), value]);
  }
  return found;
}

function messages(message: Buffer, field: number): Buffer[] {
  return (fields(message).get(field) ?? []) as Buffer[];
}

function text(message: Buffer, field: number): string {
  return messages(message, field)[0]?.toString() ?? "";
}

function hex(message: Buffer, field: number): string {
  return messages(message, field)[0]?.toString("hex") ?? "";
}
