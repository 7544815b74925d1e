import { describe, expect, onTestFinished, test } from "vitest";
import { compareUsage, type UsageRow, type UsageRows } from "#shared/usage/usage-row.ts";
import type { Batch, Books, Spending } from "../../services/gateway/settlement/books.ts";

/** Where one test keeps its books. */
export interface BooksPlace {
  readonly books: Books;
  readonly usage: UsageRows;
  readonly spentOf: (keyId: string, period: string) => Promise<number>;
  readonly close: () => void;
}

const all = { from: "0000-01-01", to: "9999-12-31" };
const most = 1_000_000_000_000;

export function booksContract(adapter: string, openPlace: () => Promise<BooksPlace>): void {
  async function open(): Promise<BooksPlace> {
    const place = await openPlace();
    onTestFinished(() => place.close());
    return place;
  }

  describe(`books in ${adapter}`, () => {
    test("rows add up over batches and gateways, and are read back in order", async () => {
      const { books, usage } = await open();
      const one = rowOf({ model: "llama3:8b", requests: 2, failed: 1, promptTokens: 10, completionTokens: 20 });
      const other = rowOf({ model: "llama3:8b", answered: 1, firstTokenMs: 30, durationMs: 40 });
      const older = rowOf({ day: "2026-01-31", keyId: "zzzzzzzzzzzz" });
      const otherKey = rowOf({ keyId: "AAAAAAAAAAAA", model: "a" });
      await books.write(batchOf({ usage: [one, otherKey] }));
      await books.write(batchOf({ usage: [other], sequence: 2 }));
      await books.write(batchOf({ usage: [one, older], gateway: "another" }));
      expect(await usage.read(all)).toEqual([
        older,
        otherKey,
        rowOf({
          model: "llama3:8b",
          requests: 5,
          failed: 2,
          promptTokens: 20,
          completionTokens: 40,
          answered: 1,
          firstTokenMs: 30,
          durationMs: 40,
        }),
      ]);
    });

    test("a batch that is sent again is counted once", async () => {
      const { books, usage, spentOf } = await open();
      const row = rowOf({ promptTokens: 3, completionTokens: 4 });
      const batch = batchOf({ usage: [row], spent: [spendingOf({ tokens: 7 })] });
      for (let again = 0; again < 3; again += 1) await books.write(batch);
      await books.write(batchOf({ sequence: 2 }));
      await books.write(batch);
      expect(await usage.read(all)).toEqual([row]);
      expect(await spentOf(row.keyId, "2026-02-01")).toBe(7);
    });

    test("a request that named no model is told apart from every model", async () => {
      const { books, usage } = await open();
      const rows = [null, "null", "requests", ":", "a:requests:b", "hf.co/org/qwen:q4_K-M", "ü 😀\n"].map((model) =>
        rowOf({ model, requests: 1 }),
      );
      await books.write(batchOf({ usage: rows }));
      const read = await usage.read(all);
      expect(read).toHaveLength(rows.length);
      expect(read).toEqual(expect.arrayContaining(rows));
    });

    test("a day is read whole, however much there is of it", async () => {
      const { books, usage } = await open();
      const rows = Array.from({ length: 3_000 }, (_, at) =>
        rowOf({ model: `model-${at}`, requests: at + 1, durationMs: at }),
      );
      await books.write(batchOf({ usage: rows }));
      expect(await usage.read(all)).toEqual(rows.toSorted(compareUsage));
    });

    test("only the days that are asked for are read, the first and the last included", async () => {
      const { books, usage } = await open();
      const rows = ["2026-01-30", "2026-01-31", "2026-02-01", "2026-02-02"].map((day) => rowOf({ day }));
      await books.write(batchOf({ usage: rows }));
      expect(await usage.read({ from: "2026-01-31", to: "2026-02-01" })).toEqual(rows.slice(1, 3));
      expect(await usage.read({ from: "2026-03-01", to: "2026-03-31" })).toEqual([]);
    });

    test("a day that has long passed is forgotten when newer ones are written", async () => {
      const { books, usage } = await open();
      const days = Array.from({ length: 450 }, (_, at) =>
        new Date(Date.UTC(2026, 0, 1 + at)).toISOString().slice(0, 10),
      );
      await books.write(batchOf({ usage: days.map((day) => rowOf({ day })) }));
      const read = await usage.read(all);
      expect(read.length).toBeGreaterThanOrEqual(400);
      expect(read.length).toBeLessThanOrEqual(401);
      expect(read.at(-1)?.day).toBe(days.at(-1));
    });

    test("large numbers are kept to the last digit", async () => {
      const { books, usage, spentOf } = await open();
      const row = rowOf({ promptTokens: most - 1, completionTokens: 0, durationMs: most + 1 });
      const spent = [spendingOf({ tokens: most - 1 })];
      await books.write(batchOf({ usage: [row], spent }));
      await books.write(
        batchOf({ usage: [rowOf({ promptTokens: 2 })], spent: [spendingOf({ tokens: 2 })], sequence: 2 }),
      );
      expect(await usage.read(all)).toEqual([{ ...row, requests: 2, promptTokens: most + 1 }]);
      expect(await spentOf(row.keyId, "2026-02-01")).toBe(most + 1);
    });

    test("what a key has spent is told apart by key and by period", async () => {
      const { books, spentOf } = await open();
      const used = [
        { day: "2026-02-01", tokens: 1 },
        { day: "2026-02-28", tokens: 10 },
        { day: "2026-03-01", tokens: 100 },
      ];
      const usage = used.map(({ day, tokens }) => rowOf({ day, completionTokens: tokens }));
      const spent = used.flatMap(({ day, tokens }) =>
        [day, day.slice(0, 7)].map((period) => spendingOf({ period, tokens })),
      );
      await books.write(batchOf({ usage, spent }));
      const keyId = rowOf({}).keyId;
      const periods = ["2026-02-01", "2026-02", "2026-03", "2026-04", "2026-02-02"];
      expect(await Promise.all(periods.map((period) => spentOf(keyId, period)))).toEqual([1, 11, 100, 0, 0]);
      expect(await spentOf("another00000", "2026-02")).toBe(0);
    });

    test("a batch with nothing in it says how many gateways there are", async () => {
      const { books } = await open();
      expect(await books.write(batchOf({}))).toEqual({ gateways: 1 });
    });

    test("books that are closed say that they are unavailable", async () => {
      const { books, usage, close } = await open();
      close();
      await expect(books.write(batchOf({ usage: [rowOf({})] }))).rejects.toMatchObject({ code: "backend_unavailable" });
      await expect(usage.read(all)).rejects.toMatchObject({ code: "backend_unavailable" });
    });
  });
}

export function batchOf(batch: Partial<Batch>): Batch {
  return { gateway: "a-gateway", sequence: 1, settled: [], toldOf: [], renewed: [], spent: [], usage: [], ...batch };
}

export function rowOf(row: Partial<UsageRow>): UsageRow {
  return {
    day: "2026-02-01",
    keyId: "abcdefABCDEF",
    model: "llama3",
    requests: 1,
    failed: 0,
    promptTokens: 0,
    completionTokens: 0,
    answered: 0,
    firstTokenMs: 0,
    durationMs: 0,
    ...row,
  };
}

/** Of a period that ends far in the future, whenever the test runs. */
function spendingOf(spending: Partial<Spending>): Spending {
  return { keyId: rowOf({}).keyId, period: "2026-02-01", endsAtMs: Date.UTC(9999, 0), tokens: 0, ...spending };
}
