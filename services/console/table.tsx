/** A table: its rows are found by words, sorted by a click on a head, and shown a page at a time. The address has each choice. */
import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import { query, setQuery } from "./address.ts";
import { Button, Filters, QueryField } from "./forms.tsx";
import { numberText } from "./quantity.ts";
import { type By, findRows, pageAt, pageRows, sortRows } from "./table-rows.ts";

/**
 * A column of a table. Numbers stand at the right; a wide column is left out on narrow screens, and comes last on a phone.
 * A click on its head sorts the rows by the value of `by`, and words are found in its text. A head without `by` cannot sort.
 * In a table without any `by` rows are neither found nor sorted nor paged: the page does so, since it has not all of them.
 */
export type Column<Row> = readonly [
  name: string,
  cell: (row: Row) => ComponentChildren,
  layout?: "" | "right" | "wide" | "right wide",
  by?: By<Row>,
];

export interface TableProps<Row> {
  /** The name of the table for screen readers. */
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  /** A row that stays below the others, however they are sorted. */
  readonly last?: Row | undefined;
  readonly keyOf: (row: Row, place: number) => string;
  readonly empty: ComponentChildren;
  /** Stands before `find`, `sort` and `page` in the address. Only the main table of a page has none. */
  readonly name?: string;
  /** The fields of the page by which it chooses the rows. They stand beside the find. */
  readonly filters?: ComponentChildren;
  /** False if the filters of the page find rows by words themselves. */
  readonly finds?: boolean;
  /** The rows that are chosen, by their keys, if some can be. */
  readonly choice?: RowChoice<Row> | undefined;
}

interface RowChoice<Row> {
  readonly chosen: ReadonlySet<string>;
  readonly onChoose: (chosen: ReadonlySet<string>) => void;
  readonly nameOf: (row: Row) => string;
}

/** A table beside others has a find from this many rows on. */
const findFrom = 10;

export function Table<Row>({
  caption,
  columns,
  rows,
  last,
  keyOf,
  empty,
  name,
  filters,
  finds = true,
  choice,
}: TableProps<Row>) {
  const room = useRef<HTMLDivElement>(null);
  const fieldOf = (field: string): string => (name === undefined ? field : `${name}-${field}`);
  const given = (field: string): string => query.value.get(fieldOf(field)) ?? "";
  const [find, sort] = [given("find"), given("sort")];
  const sorting = columns.flatMap(([title, , , by]) => (by === undefined ? [] : [{ title, by }]));
  const found =
    find === ""
      ? rows
      : findRows(
          rows,
          sorting.map(({ by }) => by),
          find,
        );
  const by = sorting.find(({ title }) => title === sort.replace(/^-/, ""))?.by;
  const ordered = by === undefined ? found : sortRows(found, by, sort.startsWith("-"));
  const { page, pages, from, to } = pageAt(found.length, Number(given("page")));
  const shown = sorting.length === 0 ? [...ordered] : ordered.slice(from, to);
  if (last !== undefined && find === "") shown.push(last);
  const hasFind = find !== "" || (finds && sorting.length > 0 && rows.length >= (name === undefined ? 1 : findFrom));
  const turn = (next: number): void => {
    setQuery(fieldOf("page"), next === 1 ? undefined : String(next));
    room.current?.scrollIntoView({ block: "start" });
  };
  return (
    <div class="listing" ref={room}>
      {(hasFind || filters) && (
        <Filters label={`Filters: ${caption}`}>
          {hasFind && (
            <QueryField name={fieldOf("find")} drops={fieldOf("page")} label="Find" type="search" value={find} />
          )}
          {filters}
          {hasFind && (
            <small role="status">
              {numberText(found.length)} {find === "" ? "in all" : `of ${numberText(rows.length)}`}
            </small>
          )}
        </Filters>
      )}
      {shown.length === 0 ? (
        <p class="empty">
          {rows.length === 0 ? (
            empty
          ) : (
            <>
              Nothing here contains <bdi>{find}</bdi>.
            </>
          )}
        </p>
      ) : (
        <div class="table-room" tabIndex={0} role="region" aria-label={caption}>
          <table>
            <thead>
              <tr>
                {choice && (
                  <th class="choice">
                    <ChoiceBox label="Choose all that are shown" keys={shown.map(keyOf)} {...choice} />
                  </th>
                )}
                {columns.map(([title, , layout, sorts]) => (
                  <th key={title} scope="col" class={layout} aria-sort={directionOf(title, sort)}>
                    {sorts === undefined ? (
                      title || <span class="unseen">actions</span>
                    ) : (
                      <SortButton title={title} sort={sort} fieldOf={fieldOf} />
                    )}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {shown.map((row, place) => (
                <tr key={keyOf(row, place)}>
                  {choice && (
                    <td class="choice">
                      <ChoiceBox label={`Choose ${choice.nameOf(row)}`} keys={[keyOf(row, place)]} {...choice} />
                    </td>
                  )}
                  {columns.map(([title, cell, layout]) => (
                    <td key={title} class={layout} data-head={title}>
                      {cell(row)}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {sorting.length > 0 && found.length > pageRows && (
        <nav class="actions" aria-label={`Pages: ${caption}`}>
          <Button text="Previous" disabled={page === 1} onDo={() => turn(page - 1)} />
          <span class="figure" role="status">
            {numberText(from + 1)}–{numberText(to)} of {numberText(found.length)}
          </span>
          <Button text="Next" disabled={page === pages} onDo={() => turn(page + 1)} />
        </nav>
      )}
    </div>
  );
}

interface ChoiceBoxProps extends Pick<RowChoice<never>, "chosen" | "onChoose"> {
  readonly label: string;
  readonly keys: readonly string[];
}

function ChoiceBox({ label, keys, chosen, onChoose }: ChoiceBoxProps) {
  const isChosen = keys.every((key) => chosen.has(key));
  const others = [...chosen].filter((key) => !keys.includes(key));
  const choose = () => onChoose(new Set(isChosen ? others : [...others, ...keys]));
  return <input type="checkbox" aria-label={label} checked={isChosen} onChange={choose} />;
}

interface SortButtonProps {
  readonly title: string;
  readonly sort: string;
  readonly fieldOf: (field: string) => string;
}

/** The head of a column that sorts: upwards, downwards, and as before. */
function SortButton({ title, sort, fieldOf }: SortButtonProps) {
  const next = sort === title ? `-${title}` : sort === `-${title}` ? undefined : title;
  return (
    <button type="button" class="sort" onClick={() => setQuery(fieldOf("sort"), next, fieldOf("page"))}>
      {title}
    </button>
  );
}

function directionOf(title: string, sort: string) {
  if (title !== "" && sort === title) return "ascending";
  return sort === `-${title}` ? "descending" : undefined;
}
