import { Fragment } from "preact";
import type { SentTo } from "#shared/admin/admin-call.ts";
import { countText, readCount, readDuration } from "#shared/process/quantities.ts";
import {
  type GivenTerms,
  keyTerms,
  type SomeTerms,
  type TermName,
  type TermRow,
  termRows,
} from "#shared/admin/key-terms.ts";
import { amountText, readMoney } from "#shared/money/money.ts";
import { allows } from "#shared/records/match-scope.ts";
import type { ShownKey } from "#shared/records/shown-key.ts";
import { ApiFault } from "../admin-api.ts";
import { Check, Choice, fieldsOf, listIn, TextField, type TextFieldProps } from "../forms.tsx";
import { clock } from "../live.ts";
import { currency } from "../currency.ts";
import { Time } from "../values.tsx";
import { MatchingModels } from "./matching-models.tsx";

/** The terms of a key as a form has them: texts. A mark that the key has is "yes", and the period of a budget has its own. */
export type Terms = Readonly<Record<TermName | `per_of_${TermName}` | "name" | "scopes", string>>;

type TermsShown = SomeTerms & Partial<Pick<ShownKey, "name" | "scopes">>;

export function termsOf(shown: TermsShown = {}) {
  const texts = termRows.flatMap(([name, row]) => [
    [name, textOf(row, shown[name])],
    [`per_of_${name}`, periodIn(shown[name])],
  ]);
  const { name = "", scopes = ["*"] } = shown;
  return { ...Object.fromEntries(texts), name, scopes: scopes.join(" ") } as Terms;
}

function textOf(row: TermRow, value: SomeTerms[TermName]): string {
  if (row.kind === "mark") return (value ?? row.usual) ? "yes" : "";
  if (typeof value === "number") return countText(value);
  if (typeof value === "string") return value;
  if (typeof value !== "object" || value === null) return "";
  if ("millionths" in value) return amountText(value.millionths);
  return "tokens" in value ? countText(value.tokens) : value.join(" ");
}

function periodIn(value: SomeTerms[TermName]): string {
  return typeof value === "object" && value !== null && "per" in value ? value.per : "month";
}

/** Returns the terms of a key as the admin API takes them. */
export function bodyOf(terms: Terms): SentTo<"POST /keys">["body"] {
  return { name: terms.name, scopes: listIn(terms.scopes), ...givenIn(terms, termRows) };
}

/** Returns the terms of some rows as the admin API takes them. Null takes a limit away. `at` stands before each parameter. */
export function givenIn(terms: Terms, rows: typeof termRows, at = ""): GivenTerms {
  const valueOf = ([name, { kind, needs }]: (typeof termRows)[number]): unknown => {
    const text = needs === undefined || terms[needs] !== "" ? terms[name].trim() : "";
    if (kind === "mark") return text === "yes";
    if (text === "") return null;
    if (kind === "machines") return listIn(text);
    if (kind === "choice") return text;
    const per = terms[`per_of_${name}`];
    if (kind === "money") return { millionths: amountIn(text, at + name), per };
    const count = readCount(text);
    if (Number.isNaN(count))
      throw new ApiFault(0, { message: "Must be a whole number, such as 60, 100k or 2M.", param: at + name });
    return kind === "budget" ? { tokens: count, per } : count;
  };
  return Object.fromEntries(rows.map((row) => [row[0], valueOf(row)]));
}

function amountIn(text: string, param: string): number {
  const millionths = readMoney(text);
  if (millionths > 0) return millionths;
  throw new ApiFault(0, {
    message: "Must be an amount above 0 with at most six decimals, such as 500 or 0.25.",
    param,
  });
}

/** Returns the words of a term as a sentence. */
function sentenceOf(row: TermRow): string {
  const words = row.kind === "mark" && row.usual ? row.back : row.words;
  const zero = row.kind !== "mark" && row.zero ? ` 0 for ${row.zero}.` : "";
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}.${zero}`;
}

interface TermFieldsProps {
  readonly terms: Terms;
  readonly onTerms: (terms: Terms) => void;
}

/** The fields of all terms of a key. */
export function TermFields({ terms, onTerms }: TermFieldsProps) {
  const rowsOf = (kind: TermRow["kind"]) => termRows.filter(([, row]) => row.kind === kind);
  return (
    <>
      <NameField {...fieldsOf(terms, onTerms)("name", "Name")} />
      <ScopeFields terms={terms} onTerms={onTerms} />
      <LimitFields terms={terms} onTerms={onTerms} rows={termRows.filter(([, row]) => row.needs === undefined)} />
      {rowsOf("mark").map(([name, row]) => (
        <Check
          key={name}
          label={row.title}
          hint={sentenceOf(row)}
          checked={terms[name] === "yes"}
          onCheck={(checked) => onTerms({ ...terms, [name]: checked ? "yes" : "" })}
        />
      ))}
      {rowsOf("choice").map(([name, row]) => (
        <Fragment key={name}>
          <Choice
            label={row.title}
            hint={sentenceOf(row)}
            value={terms[name]}
            onChoose={(value) => onTerms({ ...terms, [name]: value })}
            options={[["", "none"], ...(("choices" in row && row.choices) || []).map((each) => [each, each] as const)]}
          />
          {terms[name] !== "" && (
            <LimitFields terms={terms} onTerms={onTerms} rows={termRows.filter(([, { needs }]) => needs === name)} />
          )}
        </Fragment>
      ))}
    </>
  );
}

/** The fields of the models that may be called, and of the machines. */
export function ScopeFields({ terms, onTerms }: TermFieldsProps) {
  const field = fieldsOf(terms, onTerms);
  return (
    <>
      <TextField
        {...field("scopes", "Models it may call")}
        hint="Ids, names or patterns with *, such as llama3.2 qwen*. A * alone allows all."
        suggest={{ of: "models", isList: true }}
        required
      />
      <MatchingModels
        matches={(id) => allows(listIn(terms.scopes), id)}
        before="Now:"
        shownMax={12}
        none="No model that machines offer now matches."
      />
      <TextField
        {...field("machines", keyTerms.machines.title)}
        placeholder={keyTerms.machines.without}
        suggest={{ of: "machines", isList: true }}
      />
    </>
  );
}

interface LimitFieldsProps extends TermFieldsProps {
  readonly rows: typeof termRows;
  /** Stands before the name of each parameter. */
  readonly at?: string;
}

/** The fields of those of these terms that are counts, budgets and money. */
export function LimitFields({ rows, at, terms, onTerms }: LimitFieldsProps) {
  const field = fieldsOf(terms, onTerms, at);
  return (
    <>
      <div class="two">
        {rows.map(
          ([name, row]) =>
            row.kind === "count" && (
              <TextField
                key={name}
                {...field(name, row.title)}
                placeholder={row.without ?? "none"}
                hint={row.zero && sentenceOf(row)}
              />
            ),
        )}
      </div>
      {rows.map(([name, row]) => {
        const isMoney = row.kind === "money";
        return (
          (isMoney || row.kind === "budget") && (
            <div key={name} class="two">
              <TextField
                {...field(name, `${row.title}, in ${isMoney ? currency.value : "tokens"}`)}
                placeholder="none"
                hint={isMoney ? "Such as 500 or 0.25." : "Such as 500k or 2M."}
              />
              <Choice
                label={`${row.title} for a`}
                value={terms[`per_of_${name}`]}
                onChoose={(per) => onTerms({ ...terms, [`per_of_${name}`]: per })}
                options={periods}
              />
            </div>
          )
        );
      })}
    </>
  );
}

const periods = [
  ["day", "day (UTC)"],
  ["month", "month (UTC)"],
] as const;

type OwnField = Pick<TextFieldProps, "value" | "onText">;

export function NameField(props: OwnField) {
  const hint = "A note for operators. Clients do not see it.";
  return <TextField {...props} label="Name" param="name" hint={hint} required placeholder="alice's laptop" />;
}

/** A field for the time that a key is valid from now on, with the time at which it then expires. */
export function TtlField(props: OwnField) {
  const atMs = clock.value + readDuration(props.value);
  const until = atMs < maxTimeMs && [" The key then expires ", <Time at={new Date(atMs).toISOString()} />, "."];
  return (
    <TextField
      {...props}
      label="Valid for, from now on"
      param="ttl"
      hint={["A duration such as 90d, 12h or 30m.", until]}
      required
    />
  );
}

/** The last time that a `Date` can have. */
const maxTimeMs = 8.64e15;
