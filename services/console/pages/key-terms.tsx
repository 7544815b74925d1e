import type { ShownKey } from "#shared/records/shown-key.ts";
import { listIn, Choice, TextField } from "../forms.tsx";
import { MatchingModels } from "./matching-models.tsx";
import { allows } from "#shared/records/match-scope.ts";

/** The terms of a key as a form has them: texts. */
export interface Terms {
  readonly name: string;
  readonly scopes: string;
  readonly machines: string;
  readonly rpm: string;
  readonly tpm: string;
  readonly concurrency: string;
  readonly budget: string;
  readonly loads: string;
  readonly per: string;
}

export const newTerms: Terms = {
  name: "",
  scopes: "*",
  machines: "",
  rpm: "",
  tpm: "",
  concurrency: "",
  budget: "",
  loads: "",
  per: "month",
};

export function termsOf(key: ShownKey): Terms {
  const text = (value: number | null | undefined): string =>
    value === null || value === undefined ? "" : String(value);
  return {
    name: key.name,
    scopes: key.scopes.join(" "),
    machines: key.machines?.join(" ") ?? "",
    rpm: text(key.rpm),
    tpm: text(key.tpm),
    concurrency: text(key.concurrency),
    budget: text(key.budget?.tokens),
    loads: text(key.loads),
    per: key.budget?.per ?? "month",
  };
}

/** Returns the terms as the admin API takes them. Null takes a limit away. */
export function bodyOf(terms: Terms): object {
  const count = (text: string): number | null => (text.trim() === "" ? null : Number(text));
  const machines = listIn(terms.machines);
  return {
    name: terms.name,
    scopes: listIn(terms.scopes),
    machines: machines.length === 0 ? null : machines,
    rpm: count(terms.rpm),
    tpm: count(terms.tpm),
    concurrency: count(terms.concurrency),
    loads: count(terms.loads),
    budget: count(terms.budget) === null ? null : { tokens: count(terms.budget), per: terms.per },
  };
}

export function TermFields({ terms, onTerms }: { readonly terms: Terms; readonly onTerms: (terms: Terms) => void }) {
  const field = (
    name: keyof Terms,
    label: string,
    rest: {
      readonly hint?: string;
      readonly type?: "number";
      readonly required?: boolean;
      readonly placeholder?: string;
    } = {},
  ) => <TextField label={label} value={terms[name]} onText={(text) => onTerms({ ...terms, [name]: text })} {...rest} />;
  return (
    <>
      {field("name", "Name", { hint: "For you: clients never see it.", required: true, placeholder: "alice's laptop" })}
      {field("scopes", "Models it may call", {
        hint: "Ids, names or patterns with *, such as llama3.2 qwen*. A * alone allows all.",
        required: true,
      })}
      <MatchingModels
        matches={(id) => allows(listIn(terms.scopes), id)}
        before="Now:"
        shownMax={12}
        none="No model of this moment matches."
      />
      <div class="two">
        {field("rpm", "Requests a minute", { type: "number", placeholder: "no limit" })}
        {field("tpm", "Tokens a minute", { type: "number", placeholder: "no limit" })}
        {field("concurrency", "Requests at once", { type: "number", placeholder: "no limit" })}
        {field("machines", "Only on these machines", { placeholder: "all" })}
        {field("loads", "Loads a minute", {
          type: "number",
          placeholder: "6",
          hint: "In place of other models; 0 for none.",
        })}
        {field("budget", "Budget, in tokens", { type: "number", placeholder: "no limit" })}
        <Choice
          label="Budget for a"
          value={terms.per}
          onChoose={(per) => onTerms({ ...terms, per })}
          options={[
            ["day", "day (UTC)"],
            ["month", "month (UTC)"],
          ]}
        />
      </div>
    </>
  );
}
