import type { ShownSetting, SiteStatus } from "#shared/admin/site-operations.ts";
import { useAnswer } from "../admin-api.ts";
import { clock } from "../live.ts";
import { Answered, Facts, Page, Section } from "../parts.tsx";
import { numberText, spanText } from "../quantity.ts";
import { isEndingSoon } from "../site-words.ts";
import { type Column, Table, type TableProps } from "../table.tsx";
import { Badge, Name, None, orDash, Time } from "../values.tsx";

const gatewayColumns: readonly Column<SiteStatus["gateways"][number]>[] = [
  [
    "gateway",
    ({ name, is_this: isThis }) => (
      <>
        <Name>{name}</Name> {isThis && <Badge tone="good">answers this page</Badge>}
      </>
    ),
  ],
  ["version", ({ version }) => version],
  ["up for", ({ started_at: at }) => (at === null ? <None /> : spanText(clock.value - Date.parse(at)))],
  ["requests now", ({ running }) => orDash(running, numberText), "right"],
];

const certificateColumns: readonly Column<SiteStatus["certificates"][number]>[] = [
  ["certificate", ({ setting }) => <Name>{setting}</Name>],
  ["for", ({ names }) => <Name>{names}</Name>, "wide"],
  [
    "until",
    ({ expires_at: at }) => (
      <>
        <Time at={at} />{" "}
        <Badge tone={isEndingSoon(at, clock.value) ? "bad" : "good"}>
          {spanText(Date.parse(at) - clock.value)} left
        </Badge>
      </>
    ),
  ],
];

const settingColumns: readonly Column<ShownSetting>[] = [
  ["setting", ({ name }) => <Name>{name}</Name>, "", ({ name }) => name],
  [
    "value",
    ({ value, ...each }) => (value === null ? <None text={noValue(each)} /> : <Name>{value}</Name>),
    "",
    (row) => row.value,
  ],
  ["from", ({ source }) => source, "", ({ source }) => source],
];

/** The gateways of the site, how this one is configured, certificates and the last backup. */
export function Site() {
  const status = useAnswer("GET /site/status", {}, Math.floor(clock.value / 10_000));
  return (
    <Page title="Site" about="The gateways of this site, how they are configured, certificates and the last backup.">
      <Answered of={status} waiting="Loading the site…">
        {({ gateways, store, broker, certificates, backed_up_at: backup, settings }) => (
          <>
            <Facts
              facts={[
                ["Keys and records", <Name>{store}</Name>],
                ["NATS", <Name>{broker}</Name>],
                [
                  "Last backup",
                  backup === null ? ["none yet: ", <code>trunkline backup</code>, " makes one"] : <Time at={backup} />,
                ],
              ]}
            />
            <Part
              caption="Gateways"
              columns={gatewayColumns}
              rows={gateways}
              keyOf={({ name }, place) => `${name} ${place}`}
              empty="No gateway has reported yet."
            />
            <Part
              caption="Certificates"
              columns={certificateColumns}
              rows={certificates}
              keyOf={({ setting }) => setting}
              empty="This gateway has no certificate of its own. Connections are encrypted only if a proxy in front of it has one."
            />
            <Part
              caption="Settings of this gateway"
              columns={settingColumns}
              rows={(settings ?? []).toSorted((one, other) => Number(isUsual(one)) - Number(isUsual(other)))}
              keyOf={({ name }) => name}
              empty="Admins and operators see the settings here."
            />
          </>
        )}
      </Answered>
    </Page>
  );
}

function Part<Row>(table: TableProps<Row>) {
  return (
    <Section title={table.caption}>
      <Table name={table.caption} {...table} />
    </Section>
  );
}

const isUsual = ({ source }: Pick<ShownSetting, "source">): boolean => source === "default";

function noValue({ secret, source }: Pick<ShownSetting, "secret" | "source">): string {
  return secret && source !== "default" ? "a secret, not shown" : "not set";
}
