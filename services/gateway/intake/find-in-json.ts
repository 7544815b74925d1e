import {
  closingBrace,
  closingBracket,
  comma,
  endOfNumber,
  endOfText,
  openingBrace,
  openingBracket,
  quote,
  startsNumber,
} from "./json-text.ts";

/** A path in JSON: keys of objects and indexes of arrays. */
export type JsonPath = readonly (string | number)[];

/** Returns the path to the first duplicate key. The bytes must be valid JSON. */
export function findRepeatedKey(bytes: Buffer): JsonPath | undefined {
  return find(bytes, ({ repeated }) => repeated);
}

/** Returns the path to the number that begins at byte `at`. The bytes must be valid JSON. */
export function findNumber(bytes: Buffer, at: number): JsonPath | undefined {
  return find(bytes, (seen) => seen.at === at);
}

/** A key or a number that the scan has reached. */
interface Seen {
  readonly at: number;
  readonly repeated: boolean;
}

interface Frame {
  /** Keys of an object so far; undefined for an array. */
  readonly keys: Set<string> | undefined;
  step: string | number;
  awaitsKey: boolean;
}

function find(bytes: Buffer, isIt: (seen: Seen) => boolean): JsonPath | undefined {
  const frames: Frame[] = [];
  const isFound = (at: number, repeated = false): boolean => isIt({ at, repeated });
  for (let place = 0; place < bytes.byteLength; place += 1) {
    const frame = frames.at(-1);
    switch (bytes[place]) {
      case openingBrace:
        frames.push({ keys: new Set(), step: "", awaitsKey: true });
        break;
      case openingBracket:
        frames.push({ keys: undefined, step: 0, awaitsKey: false });
        break;
      case closingBrace:
      case closingBracket:
        frames.pop();
        break;
      case comma:
        goOn(frame);
        break;
      case quote: {
        const end = endOfText(bytes, place + 1);
        if (frame?.awaitsKey === true && isFound(place, enter(frame, bytes.subarray(place, end + 1))))
          return way(frames);
        place = end;
        break;
      }
      default:
        if (!startsNumber(bytes[place])) break;
        if (isFound(place)) return way(frames);
        place = endOfNumber(bytes, place) - 1;
    }
  }
  return undefined;
}

/** Moves a frame past a comma. */
function goOn(frame: Frame | undefined): void {
  if (frame === undefined) return;
  frame.awaitsKey = frame.keys !== undefined;
  if (typeof frame.step === "number") frame.step += 1;
}

/** Moves a frame to the value of a key. Returns true if the object already had that key. */
function enter(frame: Frame, quoted: Buffer): boolean {
  const key = String(JSON.parse(quoted.toString("utf8")));
  const had = frame.keys?.has(key) === true;
  frame.keys?.add(key);
  frame.step = key;
  frame.awaitsKey = false;
  return had;
}

function way(frames: readonly Frame[]): JsonPath {
  return frames.map(({ step }) => step);
}
