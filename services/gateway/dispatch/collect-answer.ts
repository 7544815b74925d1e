import { Fault } from "#shared/fault/fault.ts";
import { limits } from "#shared/protocol/limits.ts";
import type { JobListener } from "./follow-frames.ts";

/** Gathers an answer that is sent whole, up to a limit; past that, `onTooLarge` is to cancel the job. */
export function collectAnswer(onTooLarge: (fault: Fault) => void): JobListener & { bytes(): Buffer } {
  const pieces: Uint8Array[] = [];
  let size = 0;
  return {
    onData(bytes) {
      size += bytes.byteLength;
      pieces.push(bytes);
      if (size <= limits.wholeAnswerBytesMax) return;
      onTooLarge(
        new Fault("invalid_value", {
          message: `The answer is longer than ${limits.wholeAnswerBytesMax} bytes (wholeAnswerBytesMax); ask for it as a stream.`,
          param: "stream",
        }),
      );
    },
    bytes() {
      const [only] = pieces;
      if (only === undefined || pieces.length > 1) return Buffer.concat(pieces);
      return Buffer.isBuffer(only) ? only : Buffer.from(only.buffer, only.byteOffset, only.byteLength);
    },
  };
}
