import { serveOrders } from "#shared/process/work-thread.ts";

/** Answers each order with its own name, but for `endless`, which it never leaves. */
serveOrders(
  ({ name }: { readonly name: string }) => {
    for (;;) if (name !== "endless") return name;
  },
  () => undefined,
);
