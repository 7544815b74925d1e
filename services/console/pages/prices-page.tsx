import { useState } from "preact/hooks";
import { type PriceTerm, priceTermNames } from "#shared/prices/price-terms.ts";
import { allows } from "#shared/records/match-scope.ts";
import type { ShownPrice } from "#shared/records/price-record.ts";
import { query, setQuery } from "../address.ts";
import { change, useAnswer } from "../admin-api.ts";
import { currency } from "../currency.ts";
import { Confirm, type DialogProps, FormDialog } from "../dialogs.tsx";
import { Button, Check, fieldsOf, TextField } from "../forms.tsx";
import { Section } from "../parts.tsx";
import { mayChangeKeys } from "../session.ts";
import type { Column } from "../table.tsx";
import { Badge, Name, Names, Time } from "../values.tsx";
import { MatchingModels } from "./matching-models.tsx";
import { RecordList } from "./record-page.tsx";

const titles: Readonly<Record<PriceTerm, string>> = {
  input: "Input, a million tokens",
  cached: "Cached, a million tokens",
  output: "Output, a million tokens",
  second: "Recording, a second",
  image: "Image",
  request: "Request",
};
const externalEnd = " external";
const modelOf = (price: string): string => price.replace(externalEnd, "");

/** The columns, with those of the prices that some model has. */
const columnsOf = (data: readonly ShownPrice[]): readonly Column<ShownPrice>[] => [
  [
    "model",
    ({ price }) => [
      <Name>{modelOf(price)}</Name>,
      price.endsWith(externalEnd) && [" ", <Badge tone="warn">external</Badge>],
    ],
    "",
    ({ price }) => price,
  ],
  ...priceTermNames
    .filter((term) => data.some((shown) => shown[term] !== null))
    .map((term): Column<ShownPrice> => [
      term,
      ({ [term]: amount }) => amount,
      "right",
      ({ [term]: amount }) => (amount === null ? null : Number(amount)),
    ]),
  ["changed", ({ changed_at: at }) => <Time at={at} />, "wide", ({ changed_at: at }) => Date.parse(at)],
  ["", ({ price }) => mayChangeKeys() && <PriceActions price={price} />],
];

export function Prices() {
  const prices = useAnswer("GET /prices", {});
  const { data = [], without = [] } = prices.answer ?? {};
  const open = query.value.get("edit") ?? "";
  return (
    <RecordList
      title="Prices"
      about={`What models cost, in ${currency.value}. An exact id goes before a pattern, and a long pattern before a short one. A new price holds for requests that begin from then on.`}
      actions={
        mayChangeKeys() && <Button text="Set a price" look="primary" onDo={() => setQuery("edit", "*new")} opens />
      }
      of={prices}
      keyOf={({ price }) => price}
      empty="No price yet. A model without a price is free, and no limit of spending ends its answers."
      columns={columnsOf(data)}
    >
      {without.length > 0 && (
        <Section title="Models without a price">
          <p class="quiet">
            Clients asked for them in the last 30 days. They are free, and no limit of spending holds. Choose one to set
            its price.
          </p>
          <div class="actions">
            {mayChangeKeys() ? without.map((model) => <Unpriced key={model} model={model} />) : <Names of={without} />}
          </div>
        </Section>
      )}
      {mayChangeKeys() && open !== "" && (
        <PriceDialog
          key={open}
          shown={data.find(({ price }) => price === open)}
          model={open === "*new" ? "" : open}
          onClose={() => setQuery("edit", undefined)}
        />
      )}
    </RecordList>
  );
}

function Unpriced({ model }: { readonly model: string }) {
  const label = `Set a price for "${model}"`;
  return <Button text={<bdi>{model}</bdi>} label={label} onDo={() => setQuery("edit", model)} opens />;
}

function PriceActions({ price }: Pick<ShownPrice, "price">) {
  const remove = () => change("DELETE /prices/{price}", { params: { price } });
  return (
    <div class="actions">
      <Button text="Change" label={`Change "${price}"`} onDo={() => setQuery("edit", price)} opens />
      <Confirm
        action="Remove"
        object={price}
        effect="Requests that begin from now on cost what another price says that fits the model, or nothing. Sums of usage stay."
        onDo={remove}
      />
    </div>
  );
}

type PriceDialogProps = Pick<DialogProps, "onClose"> & {
  readonly shown: ShownPrice | undefined;
  /** The model of a new price. */
  readonly model: string;
};

function PriceDialog({ shown, model, onClose }: PriceDialogProps) {
  const [name, setName] = useState(model);
  const [isExternal, setExternal] = useState(false);
  const texts = priceTermNames.map((term) => [term, shown?.[term] ?? ""]);
  const [amounts, setAmounts] = useState(Object.fromEntries(texts) as Readonly<Record<PriceTerm, string>>);
  const field = fieldsOf(amounts, setAmounts);
  const save = () => {
    const given = Object.entries(amounts).map(([term, amount]) => [term, amount.trim()] as const);
    const body = Object.fromEntries(given.filter(([, amount]) => amount !== ""));
    const price = shown?.price ?? name + (isExternal ? externalEnd : "");
    return change("PUT /prices/{price}", { params: { price }, body });
  };
  return (
    <FormDialog
      title={shown === undefined ? "Set a price" : ["Price of ", <bdi>{shown.price}</bdi>]}
      action="Save"
      onDo={save}
      onClose={onClose}
    >
      {shown === undefined && (
        <>
          <TextField
            label="Model"
            param="price"
            value={name}
            onText={setName}
            suggest={{ of: "models" }}
            required
            hint="An id, or a pattern with *, such as qwen*."
          />
          {name !== "" && (
            <MatchingModels
              matches={(id) => allows([name], id)}
              before="Now:"
              shownMax={8}
              none="No model that machines offer now matches."
            />
          )}
          <Check
            label="On external machines alone"
            hint="Such a price goes before one for all machines."
            checked={isExternal}
            onCheck={setExternal}
          />
        </>
      )}
      <div class="two">
        {priceTermNames.map((term) => (
          <TextField key={term} {...field(term, titles[term])} placeholder={term === "cached" ? "as input" : "none"} />
        ))}
      </div>
    </FormDialog>
  );
}
