import { expect, test } from "vitest";
import { replace } from "#shared/process/state-folder.ts";

/** A rename that fails a number of times, as while a virus scanner reads the file. */
function failing(times: number, code = "EPERM") {
  let left = times;
  const calls: string[] = [];
  const rename = (from: unknown, to: unknown): void => {
    calls.push(`${String(from)} ${String(to)}`);
    left -= 1;
    if (left >= 0) throw Object.assign(new Error(code), { code });
  };
  return { rename, calls };
}

test.each(["EPERM", "EACCES", "EBUSY"])("a rename on Windows that fails with %s is tried again", (code) => {
  const { rename, calls } = failing(2, code);
  replace("key", "key.draft", { rename, platform: "win32" });
  expect(calls).toEqual(Array.from({ length: 3 }, () => "key.draft key"));
});

test("a rename is not tried again for ever, nor elsewhere, nor for another reason", () => {
  for (const [times, code, platform, tried] of [
    [1_000, "EPERM", "win32", 20],
    [1, "EPERM", "linux", 1],
    [1, "ENOSPC", "win32", 1],
  ] as const) {
    const { rename, calls } = failing(times, code);
    expect(() => replace("key", "key.draft", { rename, platform })).toThrow(code);
    expect(calls).toHaveLength(tried);
  }
});
