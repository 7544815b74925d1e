import { isUtf8 } from "node:buffer";

/** Returns where bytes stop being UTF-8. The strides become shorter, because `isUtf8` only judges whole pieces. */
export function findNoUtf8(bytes: Buffer): number {
  let from = 0;
  for (const stride of [65_536, 256, 1]) {
    for (;;) {
      let to = Math.min(from + stride, bytes.byteLength);
      while (to < bytes.byteLength && to < from + stride + 4 && isContinuation(bytes[to])) to += 1;
      if (to === from || !isUtf8(bytes.subarray(from, to))) break;
      from = to;
    }
  }
  return from;
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}
