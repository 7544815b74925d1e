import type { Case, KeysOfTheTest } from "./row.ts";

/** Good requests need no key but one. */
type Sent = (keys: Pick<KeysOfTheTest, "key">) => ReturnType<Case["sent"]>;

interface Written {
  readonly path?: string;
  /** Further header lines, each as `Name: value`. */
  readonly headers?: readonly string[];
  /** In place of `application/json`; none when empty. */
  readonly type?: string;
}

/** A chat that would be answered with one token. */
export const goodChat = '{"model":"scripted","messages":[{"role":"user","content":"/script tokens=1"}]}';

/** A good POST with this body, by the holder of a key: to the chats unless said. */
export function posted(body: string | Buffer, written: Written = {}): Sent {
  const { path = "/v1/chat/completions", headers = [], type = "application/json" } = written;
  const bytes = Buffer.from(body);
  return ({ key }) => {
    const own = ["Host: a", `Authorization: Bearer ${key}`, ...(type === "" ? [] : [`Content-Type: ${type}`])];
    const lines = [`POST ${path} HTTP/1.1`, ...own, `Content-Length: ${bytes.byteLength}`, ...headers];
    return Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"), bytes]);
  };
}

/** A good POST with these fields as JSON. */
export function postedJson(fields: unknown, written?: Written): Sent {
  return posted(JSON.stringify(fields), written);
}

/** A good GET by the holder of a key. */
export function got(path: string, headers: readonly string[] = []): Sent {
  return ({ key }) =>
    Buffer.from(
      `${[`GET ${path} HTTP/1.1`, "Host: a", `Authorization: Bearer ${key}`, ...headers].join("\r\n")}\r\n\r\n`,
      "latin1",
    );
}
