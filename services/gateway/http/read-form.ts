import { isUtf8 } from "node:buffer";
import { Fault } from "#shared/fault/fault.ts";

/** Bounds the parts of a form. No request has as many fields and files. */
export const formPartsMax = 64;
/** Bounds the headers of one part: its name, the name of its file and their types. */
export const formHeadBytesMax = 1_024;
/** Bounds a field that is no file: the longest is a prompt. */
export const formFieldBytesMax = 64 * 1024;

/** A file of a form. `bytes` is a view of the request's body. */
export class FormFile {
  readonly name: string;
  readonly type: string;
  readonly bytes: Uint8Array;

  constructor(name: string, type: string, bytes: Uint8Array) {
    this.name = name;
    this.type = type;
    this.bytes = bytes;
  }
}

type FormValue = string | FormFile;
/** The values of a form by name. A name that ends in `[]` has a list of them. */
export type Form = Record<string, FormValue | FormValue[]>;

const lineEnd = "\r\n";
const headEnd = "\r\n\r\n";
const fieldName = /^[a-z][\w.-]{0,63}(?:\[\w{0,63}\])?$/i;

/**
 * Reads a body of `multipart/form-data`, which has one meaning or is refused. Node's own reader copies every file twice,
 * takes any number of parts and replaces bytes that are no UTF-8: 64 MiB take 128 MiB more and hold the event loop for
 * 270 ms. This one copies no file.
 */
export function readForm(bytes: Buffer | undefined, boundary: string): Form {
  const values = new Map<string, FormValue | FormValue[]>();
  for (const [name, value] of partsOf(bytes ?? Buffer.alloc(0), boundary)) {
    const known = values.get(name);
    if (name.endsWith("[]")) values.set(name, [known ?? [], value].flat());
    else if (known === undefined) values.set(name, value);
    else throw new Fault("invalid_value", { message: `The form says '${name}' more than once.`, param: name });
  }
  return Object.fromEntries(values);
}

function* partsOf(bytes: Buffer, boundary: string): Generator<[name: string, value: FormValue]> {
  const delimiter = `${lineEnd}--${boundary}`;
  const opening = delimiter.slice(lineEnd.length);
  if (bytes.subarray(0, opening.length).toString("latin1") !== opening)
    throw broken("does not begin with the boundary that its Content-Type names");
  let at = opening.length;
  for (let parts = 0; ; parts += 1) {
    const next = bytes.subarray(at, at + lineEnd.length).toString("latin1");
    if (next === "--") break;
    if (next !== lineEnd) throw broken("has other bytes behind a boundary than a line break");
    if (parts === formPartsMax) throw broken(`has more than ${formPartsMax} parts (formPartsMax)`);
    const headed = bytes.subarray(at, at + formHeadBytesMax + headEnd.length).indexOf(headEnd);
    if (headed === -1)
      throw broken(`has a part whose headers do not end within ${formHeadBytesMax} bytes (formHeadBytesMax)`);
    const from = at + headed + headEnd.length;
    const to = bytes.indexOf(delimiter, from);
    if (to === -1) throw broken("ends before its last boundary");
    yield readPart(bytes.subarray(at + lineEnd.length, at + headed), bytes.subarray(from, to));
    at = to + delimiter.length;
  }
  const rest = bytes.subarray(at + "--".length).toString("latin1");
  if (rest !== "" && rest !== lineEnd) throw broken("goes on behind its last boundary");
}

const control = /[\p{Cc}--\t]/v;
const disposition = /^form-data((?:;[ \t]*[\w*-]+=(?:"(?:[^"\\]|\\.)*"|[^\s;"]+)[ \t]*)*)$/i;
const parameter = /;[ \t]*([\w*-]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s;"]+))/g;
const asItIs = /^(?:7bit|8bit|binary)$/i;

function readPart(head: Buffer, content: Buffer): [name: string, value: FormValue] {
  const headers = new Map<string, string>();
  for (const line of textOf(head, "the headers of a part").split(lineEnd)) {
    if (control.test(line)) throw broken("has a control character in the headers of a part");
    const colon = line.indexOf(":");
    headers.set(line.slice(0, Math.max(colon, 0)).toLowerCase(), line.slice(colon + 1).trim());
  }
  if (!asItIs.test(headers.get("content-transfer-encoding") ?? "binary"))
    throw broken("has a part with a Content-Transfer-Encoding; send its bytes as they are");
  const [, parameters = ""] = disposition.exec(headers.get("content-disposition") ?? "") ?? [];
  const given = new Map<string, string>();
  for (const [, field = "", quoted, bare = ""] of parameters.matchAll(parameter))
    given.set(field.toLowerCase(), quoted?.replaceAll(/\\(.)/g, "$1") ?? bare);
  const name = given.get("name");
  if (name === undefined) throw broken('has a part without a name; send Content-Disposition: form-data; name="…"');
  if (!fieldName.test(name)) throw broken("has a part whose name is none of a field");
  const file = given.get("filename") ?? given.get("filename*");
  if (file === undefined) {
    if (content.byteLength <= formFieldBytesMax) return [name, textOf(content, `'${name}'`)];
    const message = `'${name}' must have at most ${formFieldBytesMax} bytes (formFieldBytesMax).`;
    throw new Fault("string_too_long", { message, param: name });
  }
  if (content.byteLength === 0)
    throw new Fault("invalid_value", { message: `The file in '${name}' is empty.`, param: name });
  const type = headers.get("content-type") ?? "application/octet-stream";
  return [name, new FormFile(file, type, content)];
}

function textOf(bytes: Buffer, what: string): string {
  if (!isUtf8(bytes)) throw broken(`is not UTF-8 in ${what}`);
  return bytes.toString();
}

function broken(problem: string): Fault {
  return new Fault("bad_request", { message: `The form in the request's body ${problem}.` });
}
