/** Tells a step in which an answer is made: what it is called, and all that there is to say of it. */
export type Tell = (type: string, fields: Readonly<Record<string, unknown>>) => void;

/** How an item stands. Where an answer was cut short, its last item is incomplete. */
export type ItemStatus = "in_progress" | "completed" | "incomplete";

/** An item of an answer, which tells how it is made. */
export interface OutputItem {
  /** Nothing more comes of it. */
  end(status: ItemStatus): void;
  /** The item as it stands. */
  told(): object;
}
