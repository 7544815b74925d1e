import type { AnswerTo } from "#shared/admin/admin-call.ts";
import { useAnswer } from "../admin-api.ts";
import { clock } from "../live.ts";
import { Answered, Facts, Notice, Page, Section } from "../parts.tsx";
import { numberText, spanText } from "../quantity.ts";
import { isEndingSoon } from "../site-words.ts";
import { type Column, Table } from "../table.tsx";
import { Badge, Name, None, orDash, Time } from "../values.tsx";

type Status = AnswerTo<"GET /site/status">;

const gatewayColumns: readonly Column<Status["gateways"][number]>[] = [
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

const certificateColumns: readonly Column<Status["certificates"][number]>[] = [
  ["certificate", ({ setting }) => <Name>{setting}</Name>],
  ["for", ({ names }) => <Name>{names}</Name>, "wide"],
  ["until", ({ expires_at: at }) => <Time at={at} />],
  [
    "left",
    ({ expires_at: at }) => (
      <Badge tone={isEndingSoon(at, clock.value) ? "bad" : "good"}>
        {Date.parse(at) < clock.value ? "expired" : spanText(Date.parse(at) - clock.value)}
      </Badge>
    ),
  ],
];

const settingColumns: readonly Column<NonNullable<Status["settings"]>[number]>[] = [
  ["setting", ({ name }) => <Name>{name}</Name>, "", ({ name }) => name],
  [
    "value",
    ({ value, secret, source }) =>
      value === null ? (
        <None text={secret && source !== "default" ? "a secret, not shown" : "not set"} />
      ) : (
        <Name>{value}</Name>
      ),
    "",
    ({ value }) => value,
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
                ["Last backup", backup === null ? "none is known: `trunkline backup` makes one" : <Time at={backup} />],
              ]}
            />
            <Section title="Gateways">
              <Table
                caption="Gateways"
                name="gateways"
                columns={gatewayColumns}
                rows={gateways}
                keyOf={({ name }, place) => `${name} ${place}`}
                empty="No gateway has reported yet."
              />
            </Section>
            <Section title="Certificates">
              <Table
                caption="Certificates"
                name="certificates"
                columns={certificateColumns}
                rows={certificates}
                keyOf={({ setting }) => setting}
                empty="This gateway has no certificate of its own. A proxy in front of it has one."
              />
            </Section>
            <Section title="Settings of this gateway">
              {settings === null ? (
                <Notice>Admins and operators see the settings here.</Notice>
              ) : (
                <Table
                  caption="Settings"
                  columns={settingColumns}
                  rows={settings.toSorted((one, other) => Number(isUsual(one)) - Number(isUsual(other)))}
                  keyOf={({ name }) => name}
                  empty="This gateway shows no settings."
                />
              )}
            </Section>
          </>
        )}
      </Answered>
    </Page>
  );
}

function isUsual({ source }: { readonly source: string }): boolean {
  return source === "default";
}
