import { useState } from "preact/hooks";
import { bookLimitRows, keyTerms } from "#shared/admin/key-terms.ts";
import type { ShownTeam } from "#shared/records/team-record.ts";
import { go, to } from "../address.ts";
import { change } from "../admin-api.ts";
import { type DialogProps, FormDialog } from "../dialogs.tsx";
import { fieldsOf, listIn, TextField } from "../forms.tsx";
import { givenIn, LimitFields, ScopeFields, termsOf } from "./key-terms.tsx";

type TeamDialogProps = Pick<DialogProps, "onClose"> & { readonly shown: ShownTeam | undefined };

/** Creates a team, or changes one. */
export function TeamDialog({ shown, onClose }: TeamDialogProps) {
  const [name, setName] = useState(shown?.team ?? "");
  const [terms, setTerms] = useState(termsOf(shown));
  const [own, setOwn] = useState(termsOf(shown?.own_limits));
  const { own_keys: keysShown = 10, own_days: daysShown = 90, claims: claimsShown = [] } = shown ?? {};
  const [texts, setTexts] = useState({
    own_keys: `${keysShown}`,
    own_days: `${daysShown}`,
    claims: claimsShown.join(", "),
  });
  const field = fieldsOf(texts, setTexts);
  const save = async (): Promise<void> => {
    const body = {
      scopes: listIn(terms.scopes),
      ...givenIn(terms, [["machines", keyTerms.machines], ...bookLimitRows]),
      own_keys: Number(texts.own_keys),
      own_days: Number(texts.own_days),
      own_limits: givenIn(own, bookLimitRows, "own_limits."),
      claims: texts.claims.split(",").flatMap((claim) => claim.trim() || []),
    };
    if (shown !== undefined) return void (await change("PATCH /teams/{team}", { params: { team: name }, body }));
    await change("POST /teams", { body: { team: name, ...body } });
    go(to(["teams", name]));
  };
  return (
    <FormDialog
      title={shown === undefined ? "Create a team" : ["Terms of ", <bdi>{name}</bdi>]}
      action={shown === undefined ? "Create" : "Save"}
      onDo={save}
      onClose={onClose}
    >
      {shown === undefined && (
        <TextField
          label="Name"
          param="team"
          value={name}
          onText={setName}
          hint="Small letters, digits and hyphens. It cannot be changed."
          placeholder="research"
          required
        />
      )}
      <ScopeFields terms={terms} onTerms={setTerms} />
      <fieldset>
        <legend>All keys of the team together</legend>
        <LimitFields terms={terms} onTerms={setTerms} rows={bookLimitRows} />
      </fieldset>
      <fieldset>
        <legend>Each key that a member makes</legend>
        <div class="two">
          <TextField {...field("own_keys", "Keys of each member")} type="number" hint="0 for none." required />
          <TextField {...field("own_days", "Valid for at most, in days")} type="number" required />
        </div>
        <LimitFields terms={own} onTerms={setOwn} rows={bookLimitRows} at="own_limits." />
      </fieldset>
      <TextField
        {...field("claims", "Members by their OpenID claim")}
        placeholder="none"
        hint="Values of the claim TRUNKLINE_OIDC_CLAIM, such as groups of the provider, with commas between."
      />
    </FormDialog>
  );
}
