import type { SentTo } from "#shared/admin/admin-call.ts";
import { type ShownTerms, type TermName, type TermRow, termRows } from "#shared/admin/key-terms.ts";
import { allows } from "#shared/records/match-scope.ts";
import type { ShownKey } from "#shared/records/shown-key.ts";
import { Check, Choice, listIn, TextField } from "../forms.tsx";
import { MatchingModels } from "./matching-models.tsx";

/** The terms of a key as a form has them: texts. A mark that the key has is "yes", and `per` the period of the budget. */
export type Terms = Readonly<Record<TermName | "name" | "scopes" | "per", string>>;

const unset: ShownTerms = { machines: null, rpm: null, tpm: null, concurrency: null, budget: null };

export function termsOf(key: ShownTerms & Pick<ShownKey, "name" | "scopes"> = { ...unset, name: "", scopes: ["*"] }) {
  const texts = termRows.map(([name, row]) => [name, textOf(row, key[name])]);
  const { name, scopes, budget } = key;
  return { ...Object.fromEntries(texts), name, scopes: scopes.join(" "), per: budget?.per ?? "month" } as Terms;
}

function textOf(row: TermRow, value: ShownTerms[TermName]): string {
  if (row.kind === "mark") return (value ?? row.usual) ? "yes" : "";
  if (typeof value !== "object") return String(value ?? "");
  return value === null ? "" : "per" in value ? String(value.tokens) : value.join(" ");
}

/** Returns the terms as the admin API takes them. Null takes a limit away. */
export function bodyOf(terms: Terms): SentTo<"POST /keys">["body"] {
  const valueOf = ([name, { kind }]: (typeof termRows)[number]): unknown => {
    const text = terms[name].trim();
    if (kind === "mark") return text === "yes";
    if (text === "") return null;
    if (kind === "machines") return listIn(text);
    return kind === "budget" ? { tokens: Number(text), per: terms.per } : Number(text);
  };
  const given = termRows.map((row) => [row[0], valueOf(row)]);
  return { name: terms.name, scopes: listIn(terms.scopes), ...Object.fromEntries(given) };
}

export function TermFields({ terms, onTerms }: { readonly terms: Terms; readonly onTerms: (terms: Terms) => void }) {
  const field = (name: keyof Terms, label: string) => ({
    label,
    value: terms[name],
    onText: (text: string) => onTerms({ ...terms, [name]: text }),
  });
  return (
    <>
      <TextField
        {...field("name", "Name")}
        hint="A note for operators. Clients do not see it."
        required
        placeholder="alice's laptop"
      />
      <TextField
        {...field("scopes", "Models it may call")}
        hint="Ids, names or patterns with *, such as llama3.2 qwen*. A * alone allows all."
        required
      />
      <MatchingModels
        matches={(id) => allows(listIn(terms.scopes), id)}
        before="Now:"
        shownMax={12}
        none="No model that machines offer now matches."
      />
      <div class="two">
        {termRows.map(([name, row]) =>
          row.kind === "mark" ? (
            <Check
              key={name}
              label={row.title}
              checked={terms[name] === "yes"}
              onCheck={(checked) => onTerms({ ...terms, [name]: checked ? "yes" : "" })}
            />
          ) : (
            <TextField
              key={name}
              {...field(name, row.kind === "budget" ? `${row.title}, in tokens` : row.title)}
              type={row.kind === "machines" ? "text" : "number"}
              placeholder={row.without ?? "none"}
              hint={row.zero && `0 for ${row.zero}.`}
            />
          ),
        )}
        <Choice
          label="Budget for a"
          value={terms.per}
          onChoose={(per) => onTerms({ ...terms, per })}
          options={periods}
        />
      </div>
    </>
  );
}

const periods = [
  ["day", "day (UTC)"],
  ["month", "month (UTC)"],
] as const;
