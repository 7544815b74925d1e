import { Fault } from "#shared/fault/fault.ts";

/** The longest line that a runtime may send. A whole tool call comes in one line, and its arguments may hold a file. */
export const runtimeLineBytesMax = 8 * 1024 * 1024;

const newline = 0x0a;

/**
 * Splits a body of JSON lines into its values, one batch for each piece that was read. The batch is empty when a piece
 * completes no line. Lines are split as bytes and decoded whole, so a character that spans two pieces stays whole.
 * Values before an invalid line are yielded before the fault is thrown.
 */
export async function* jsonLines(
  pieces: AsyncIterable<Uint8Array>,
  options?: { lineBytesMax: number },
): AsyncGenerator<readonly unknown[]> {
  const lineBytesMax = options?.lineBytesMax ?? runtimeLineBytesMax;
  let unfinished: Uint8Array[] = [];
  let unfinishedBytes = 0;

  const take = (end: Uint8Array): string => {
    const line = Buffer.concat([...unfinished, end]).toString();
    unfinished = [];
    unfinishedBytes = 0;
    return line;
  };

  for await (const piece of pieces) {
    const values: unknown[] = [];
    try {
      let from = 0;
      for (let at = piece.indexOf(newline); at >= 0; at = piece.indexOf(newline, from)) {
        if (unfinishedBytes + at - from > lineBytesMax) throw tooLong(lineBytesMax);
        values.push(...parse(take(piece.subarray(from, at))));
        from = at + 1;
      }
      if (from < piece.length) {
        unfinished.push(piece.subarray(from));
        unfinishedBytes += piece.length - from;
      }
      if (unfinishedBytes > lineBytesMax) throw tooLong(lineBytesMax);
    } finally {
      yield values;
    }
  }
  yield parse(take(new Uint8Array()));
}

/** Returns the value of a line, or no value for an empty line. */
function parse(line: string): unknown[] {
  if (line.trim() === "") return [];
  try {
    return [JSON.parse(line)];
  } catch {
    // Drops the parser's own error: its message quotes a part of the line, which may be a user's answer.
    throw new Fault("upstream_error", {
      message: "The runtime sent a line that is not JSON.",
      internal: `not JSON, ${line.length} characters`,
    });
  }
}

function tooLong(lineBytesMax: number): Fault {
  return new Fault("upstream_error", {
    message: `The runtime sent a line longer than ${lineBytesMax} bytes (runtimeLineBytesMax).`,
  });
}
