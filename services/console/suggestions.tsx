/** The names that fields suggest: those that the site has now. */
import { useAnswer } from "./admin-api.ts";
import { fleet } from "./live.ts";

const sources = {
  models: () => useAnswer("GET /models", {}).answer?.data.map(({ id }) => id),
  machines: () => fleet.value?.data.map(({ machine }) => machine),
  labels: () => useAnswer("GET /machines", {}).answer?.data.flatMap(({ labels }) => labels ?? []),
  keys: () => useAnswer("GET /keys", { query: { limit: 1_000, state: "valid" } }).answer?.data.map(({ name }) => name),
  people: () => useAnswer("GET /people", {}).answer?.data.map(({ name, email }) => email ?? name),
} as const satisfies Readonly<Record<string, () => readonly string[] | undefined>>;

export interface Suggested {
  readonly of: keyof typeof sources | readonly string[];
  /** True if the field has several names with spaces between. The last one is completed. */
  readonly isList?: boolean;
}

export function Suggestions({ id, of, isList, text }: Suggested & { readonly id: string; readonly text: string }) {
  const names = typeof of === "string" ? sources[of]() : of;
  const before = isList ? text.slice(0, 1 + Math.max(text.lastIndexOf(" "), text.lastIndexOf(","))) : "";
  return (
    <datalist id={id}>
      {[...new Set(names)].map((name) => (
        <option key={name} value={before + name} />
      ))}
    </datalist>
  );
}
