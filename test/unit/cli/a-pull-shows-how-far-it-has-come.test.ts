import { expect, test } from "vitest";
import type { ProgressLine } from "#shared/protocol/model.ts";
import { showProgress } from "../../../services/cli/terminal/show-progress.ts";
import { TurnableClock } from "../../harness/turnable-clock.ts";

const mb = 1_000_000;

function progress(status: string, completedMb?: number, totalMb?: number): ProgressLine {
  const bytes = (megabytes?: number): number | null => (megabytes === undefined ? null : megabytes * mb);
  return { status, completed_bytes: bytes(completedMb), total_bytes: bytes(totalMb) };
}

/** What a pull of `llama3.2` says on standard error, piece by piece. */
function pull(stderr: { isTTY?: boolean; columns?: number } = {}) {
  const clock = new TurnableClock({ wallMs: 0 });
  const said: string[] = [];
  const shown = showProgress("llama3.2", { clock, stderr: { ...stderr, write: (text) => said.push(text) } });
  return { clock, said, shown };
}

test("where nobody looks there is a line for each status and for each tenth of what it moves", () => {
  const { said, shown } = pull();
  shown.tell(progress("pulling manifest"));
  for (let percent = 0; percent <= 100; percent += 1) shown.tell(progress("pulling 6a0746a1", 20 * percent, 2_000));
  shown.tell(progress("verifying"));
  shown.tell(progress("verifying"));
  shown.end();
  expect(said).toEqual([
    "llama3.2: pulling manifest\n",
    ...[0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100].map((at) => `llama3.2: pulling 6a0746a1, ${at} % of 2.0 GB\n`),
    "llama3.2: verifying\n",
  ]);
});

test("where nobody looks two statuses that take turns do not fill the log", () => {
  const { said, shown } = pull();
  for (let at = 0; at < 100; at += 1) {
    shown.tell(progress("one", at, 1_000));
    shown.tell(progress("two", at, 1_000));
  }
  expect(said).toEqual(["llama3.2: one, 0 % of 1.0 GB\n", "llama3.2: two, 0 % of 1.0 GB\n"]);
});

test("on a terminal one line is redrawn, with a bar, sizes and the rate of the last seconds, and is gone at the end", () => {
  const { said, shown, clock } = pull({ isTTY: true, columns: 120 });
  shown.tell(progress("pulling manifest"));
  shown.tell(progress("pulling 6a0746a1", 0, 2_000));
  clock.advance(1_000);
  shown.tell(progress("pulling 6a0746a1", 50, 2_000));
  clock.advance(60_000);
  shown.tell(progress("pulling 6a0746a1", 900, 2_000));
  clock.advance(1_000);
  shown.tell(progress("pulling 6a0746a1", 920, 2_000));
  shown.end();
  expect(said).toEqual([
    "\r\u001b[Kllama3.2  pulling manifest",
    "\r\u001b[Kllama3.2  [--------------------]    0 %  0 B of 2.0 GB  pulling 6a0746a1",
    "\r\u001b[Kllama3.2  [--------------------]    2 %  50 MB of 2.0 GB  50 MB/s  pulling 6a0746a1",
    "\r\u001b[Kllama3.2  [#########-----------]   45 %  900 MB of 2.0 GB  14 MB/s  pulling 6a0746a1",
    "\r\u001b[Kllama3.2  [#########-----------]   46 %  920 MB of 2.0 GB  20 MB/s  pulling 6a0746a1",
    "\r\u001b[K",
  ]);
});

test("on a terminal the line is redrawn ten times a second at most, and never wraps", () => {
  const { said, shown, clock } = pull({ isTTY: true, columns: 40 });
  for (let at = 0; at < 1_000; at += 1) {
    shown.tell(progress("pulling 6a0746a1", at, 1_000));
    clock.advance(1);
  }
  expect(said).toHaveLength(10);
  for (const line of said) expect(line.replace("\r\u001b[K", "").length).toBeLessThan(40);
});

test("the words of a runtime can neither end the line nor steer the terminal", () => {
  for (const isTTY of [true, false]) {
    const { said, shown } = pull({ isTTY });
    shown.tell(progress("a\nb\u001b[2Jc"));
    expect(said.join("").replace("\r\u001b[K", "").trimEnd()).toMatch(/a\?b\?\[2Jc$/);
  }
});

test("more bytes than there are in all are no more than all", () => {
  const { said, shown } = pull();
  shown.tell(progress("odd", 30, 20));
  shown.tell(progress("empty", 0, 0));
  expect(said).toEqual(["llama3.2: odd, 100 % of 20 MB\n", "llama3.2: empty\n"]);
});
