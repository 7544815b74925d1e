/** The pages of stored records: a list of all of them, and one by its name. */
import type { ComponentChildren } from "preact";
import type { Shown } from "../admin-api.ts";
import { Answered, FaultNotice, Page, UnreadNotice } from "../parts.tsx";
import { Table, type TableProps } from "../table.tsx";
import { Name } from "../values.tsx";

interface RecordListProps<Row> extends Omit<TableProps<Row>, "caption" | "rows"> {
  readonly title: string;
  readonly about: ComponentChildren;
  readonly actions?: ComponentChildren;
  /** Stands above the table, also while that loads. */
  readonly head?: ComponentChildren;
  readonly of: Shown<{ readonly data: readonly Row[]; readonly unread?: number | undefined }>;
  /** The words while the list loads, if they are not the usual ones. */
  readonly waiting?: string;
  /** Stands below the table. */
  readonly children?: ComponentChildren;
}

/** The page that lists the records of a kind. */
export function RecordList<Row>({
  title,
  about,
  actions,
  head,
  of,
  waiting = `Loading the ${title.toLowerCase()}…`,
  children,
  ...table
}: RecordListProps<Row>) {
  return (
    <Page title={title} about={about} actions={actions}>
      {head}
      <Answered of={of} waiting={waiting}>
        {({ data, unread }) => (
          <>
            <UnreadNotice unread={unread} />
            <Table {...table} caption={title} rows={data} />
            {children}
          </>
        )}
      </Answered>
    </Page>
  );
}

/** Stands in place of a record's page while it loads, and where there is no such record. */
export function Missing({ title, name, of: { fault }, children }: MissingProps) {
  return (
    <Page title={title} about={<Name>{name}</Name>}>
      {fault === undefined ? <p class="quiet">Loading…</p> : <FaultNotice fault={fault} />}
      {fault?.status === 404 && children}
    </Page>
  );
}

interface MissingProps {
  /** The kind of the record. */
  readonly title: string;
  readonly name: string;
  readonly of: Shown<unknown>;
  /** Says where to look for a record that is gone. */
  readonly children?: ComponentChildren;
}
