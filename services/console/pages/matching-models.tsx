import { useAnswer } from "../admin-api.ts";
import { Names, None } from "../values.tsx";

interface Matching {
  readonly matches: (id: string) => boolean;
  /** The words before the first models that match, of which `shownMax` are named. */
  readonly before: string;
  readonly shownMax: number;
  /** The words in their place if no model matches. */
  readonly none: string;
}

/** Lists the models of this moment that match what is typed in a form. */
export function MatchingModels({ matches, before, shownMax, none }: Matching) {
  const { answer } = useAnswer("GET /models", {});
  if (answer === undefined) return null;
  const ids = [...new Set(answer.data.map(({ id }) => id))].filter(matches);
  const more = ids.length > shownMax && `and ${ids.length - shownMax} more`;
  return (
    <p class="matches" role="status">
      {ids.length === 0 ? <None text={none} /> : [before, " ", <Names of={ids.slice(0, shownMax)} />, more]}
    </p>
  );
}
