/** One answer as it stood on the wire. */
export interface WireAnswer {
  readonly status: number;
  /** By lower-case names. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

interface Read {
  readonly answers: readonly WireAnswer[];
  /** What is no whole answer yet. */
  readonly rest: string;
}

const headEnd = "\r\n\r\n";

/** The whole answers among these bytes, one character for each byte. One without a length ends with its connection. */
export function readAnswers(text: string, over: boolean): Read {
  const answers: WireAnswer[] = [];
  let rest = text;
  for (;;) {
    const answer = firstAnswer(rest, over);
    if (answer === undefined) return { answers, rest };
    answers.push(answer.answer);
    rest = rest.slice(answer.length);
  }
}

function firstAnswer(text: string, over: boolean): { answer: WireAnswer; length: number } | undefined {
  const headLength = text.indexOf(headEnd);
  const status = /^HTTP\/1\.[01] (\d{3})/.exec(text)?.[1];
  if (headLength === -1 || status === undefined) return undefined;
  const headers = new Map<string, string>();
  for (const line of text.slice(0, headLength).split("\r\n").slice(1)) {
    const colon = line.indexOf(":");
    headers.set(line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim());
  }
  const from = headLength + headEnd.length;
  const body = bodyAt({ text, from, headers, over, status: Number(status) });
  if (body === undefined) return undefined;
  const utf8 = Buffer.from(body.bytes, "latin1").toString("utf8");
  return { answer: { status: Number(status), headers, body: utf8 }, length: from + body.length };
}

function bodyAt(head: {
  readonly text: string;
  readonly from: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly over: boolean;
  readonly status: number;
}): { bytes: string; length: number } | undefined {
  const { text, from, headers, over, status } = head;
  if (status < 200 || status === 204 || status === 304) return { bytes: "", length: 0 };
  if (headers.get("transfer-encoding") === "chunked") return chunksAt(text, from);
  const length = headers.get("content-length");
  if (length !== undefined) {
    const end = from + Number(length);
    return text.length < end ? undefined : { bytes: text.slice(from, end), length: Number(length) };
  }
  return over ? { bytes: text.slice(from), length: text.length - from } : undefined;
}

function chunksAt(text: string, from: number): { bytes: string; length: number } | undefined {
  let bytes = "";
  let place = from;
  for (;;) {
    const lineEnd = text.indexOf("\r\n", place);
    if (lineEnd === -1) return undefined;
    const size = Number.parseInt(text.slice(place, lineEnd), 16);
    const end = lineEnd + 2 + size + 2;
    if (text.length < end) return undefined;
    bytes += text.slice(lineEnd + 2, lineEnd + 2 + size);
    place = end;
    if (size === 0) return { bytes, length: place - from };
  }
}
