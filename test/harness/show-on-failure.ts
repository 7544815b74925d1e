import { afterEach } from "vitest";

export interface Witness {
  readonly title: string;
  readonly said: () => Promise<string>;
}

const charactersShown = 4_000;
const watched = new Set<Witness>();
/** What those said that went before their test was over. */
let testimonies: string[] = [];

/** Whatever this process says is shown when a test of this file fails while it runs, or ran. */
export function showOnFailure(witness: Witness): void {
  watched.add(witness);
}

/** To be called before its output is gone. */
export async function endShowing(witness: Witness): Promise<void> {
  if (watched.delete(witness) && process.env["VITEST"] !== undefined) testimonies.push(await testimonyOf(witness));
}

/** Scripts beside the tests start the same processes, and have nobody who tells them of a failure. */
if (process.env["VITEST"] !== undefined) {
  afterEach(async ({ task }) => {
    if (task.result?.state === "fail") {
      const all = [...testimonies, ...(await Promise.all([...watched].map(testimonyOf)))];
      for (const testimony of all) console.log(testimony);
    }
    testimonies = [];
  });
}

async function testimonyOf({ title, said }: Witness): Promise<string> {
  const text = await said().catch((error: unknown) => `(nothing is known: ${String(error)})`);
  return `--- what ${title} said, its end ---\n${text.slice(-charactersShown).trimEnd()}`;
}
