import { expect, test } from "vitest";
import { ownBytes } from "#shared/process/own-bytes.ts";

test("bytes that stay keep no memory but their own", () => {
  for (const text of ["", "x", "größer ☃ 😀", "x".repeat(5_000)]) {
    const bytes = ownBytes(text);
    expect(Buffer.from(bytes).toString()).toBe(text);
    expect(bytes.buffer.byteLength).toBe(bytes.byteLength);
  }
});
