import { storedTurnsBytesMax, tooManyBytes } from "./kept-responses.ts";
import { isResponseId, itemsOf, readTurn, removalOf, responseOfItem } from "./stored-turns.ts";

/** The positions of a conversation, in an order, and the text of a turn. */
export interface ConversationReading {
  /** The texts at the positions: ids of turns, and removals of items. */
  readonly entries: readonly string[];
  readonly textOf: (id: string) => Promise<string | undefined>;
  readonly order?: "asc" | "desc";
  /** The id of an item: turns before the one that names it are left out. */
  readonly from?: string | undefined;
}

/** Yields the items of a conversation. A turn is read and parsed once it is reached. */
export async function* itemsIn({ entries, textOf, order = "asc", from = "" }: ConversationReading) {
  const positions = [...entries.keys()];
  if (order === "desc") positions.reverse();
  const named = positions.indexOf(entries.indexOf(responseOfItem(from) ?? ""));
  let bytes = 0;
  for (const index of positions.slice(Math.max(named, 0))) {
    const entry = entries[index] ?? "";
    const text = isResponseId(entry) ? await textOf(entry) : undefined;
    if (text === undefined) continue;
    bytes += text.length;
    if (bytes > storedTurnsBytesMax) throw tooManyBytes("after");
    const removed = new Set(entries.slice(index));
    const items = itemsOf(readTurn(text)).filter(({ id }) => !removed.has(removalOf(id)));
    yield* order === "desc" ? items.toReversed() : items;
  }
}
