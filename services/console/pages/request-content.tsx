import { useState } from "preact/hooks";
import type { AnswerTo } from "#shared/admin/admin-call.ts";
import { partsOf } from "#shared/requests/content-parts.ts";
import { change, read } from "../admin-api.ts";
import { Confirm } from "../dialogs.tsx";
import { ActionForm } from "../forms.tsx";
import { CopyText, Section } from "../parts.tsx";

/** The captured content of a request, as text. Each look is in the trail, so that the button alone reads it. */
export function RequestContent({ id }: { readonly id: string }) {
  const [content, setContent] = useState<AnswerTo<"GET /requests/{id}/content">>();
  const params = { id };
  const show = async () => setContent(await read("GET /requests/{id}/content", { params }));
  const forget = async () => {
    await change("DELETE /requests/{id}/content", { params });
    setContent(undefined);
  };
  const effect = "The prompt and the answer are removed at once. The record of the request stays.";
  return (
    <Section title="Content" aside={<Confirm action="Remove the content" effect={effect} isFinal onDo={forget} />}>
      {content === undefined ? (
        <ActionForm action="Show the content" onDo={show}>
          <p>The prompt and the answer are kept for admins. The audit trail names each reader.</p>
        </ActionForm>
      ) : (
        partsOf(content).map(([title, text], at) => <CopyText key={at} label={title} text={text} />)
      )}
    </Section>
  );
}
