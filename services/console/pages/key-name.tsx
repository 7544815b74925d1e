import { to } from "../address.ts";
import { useAnswer } from "../admin-api.ts";
import { Name } from "../parts.tsx";

type KeyNames = ReadonlyMap<string, string>;

/** Returns the names of keys by their ids. */
export function useKeyNames(): KeyNames {
  const { answer } = useAnswer("GET /keys", { query: { limit: 1_000 } });
  return new Map(answer?.data.map(({ id, name }) => [id, name]));
}

/** A key by its name with the id beside, or by its id alone where it has no name any more. */
export function KeyName({ id, name }: { readonly id: string; readonly name: string | undefined }) {
  return (
    <>
      <a href={to(["keys", id])}>{name === undefined ? <Name>{id}</Name> : <bdi>{name}</bdi>}</a>
      {name !== undefined && (
        <small>
          {" "}
          <Name>{id}</Name>
        </small>
      )}
    </>
  );
}
