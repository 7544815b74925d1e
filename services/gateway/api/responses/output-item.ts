/** Emits an event of the stream: its type and its fields. */
export type Tell = (type: string, fields: Readonly<Record<string, unknown>>) => void;

/** The status of an item. When an answer was cut short, its last item is `incomplete`. */
export type ItemStatus = "in_progress" | "completed" | "incomplete";

/** An output item of a response. It emits the events of its own progress. */
export interface OutputItem {
  /** Ends the item: no more content follows. */
  end(status: ItemStatus): void;
  /** Returns the item in its present state, as the response shows it. */
  told(): object;
}
