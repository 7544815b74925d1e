import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { encodeJson } from "#shared/protocol/frame-payload.ts";
import { chatBody, type ChatBody } from "#shared/protocol/job-bodies.ts";
import { readRequest } from "../../../harness/read-requests.ts";
import { bodyWithImages } from "../../../../services/gateway/images/image-fetcher.ts";
import { isPublicAddress } from "#shared/process/networks.ts";
import { readChat } from "../chat-requests.ts";
import * as fc from "fast-check";

const url = 'https://images.example/a.png?q="ä"';
const data = "data:image/png;base64,AAAA";
const image = (of: string) => ({ type: "image_url" as const, image_url: { url: of } });
const chat = (...content: Extract<ChatBody["messages"][number], { role: "user" }>["content"][]): ChatBody => ({
  messages: content.map((each) => ({ role: "user", content: each })),
});
const at = (...urls: string[]) => urls.map((each) => ({ url: each, param: "messages" }));
const parsed = (bytes: Uint8Array): unknown => JSON.parse(Buffer.from(bytes).toString());

test("images by URL are found with their places, and images that were sent are none of them", () => {
  const { remoteImages } = readChat(
    chat("https://a.example/", [{ type: "text", text: "See" }, image(data), image(url)]),
  );
  expect(remoteImages).toEqual([{ url, param: "messages[1].content[2].image_url.url" }]);
  expect(readChat(chat([image(data)])).remoteImages).toBeUndefined();
});

test("images by URL take the place of their URLs wherever these stand, and a text that quotes such a field stays", async () => {
  const quoting = JSON.stringify(image(url));
  const body = chat(quoting, [image(url), image(data), { ...image(url), image_url: { url, detail: "low" } }]);
  const { body: whole, sha256 } = await bodyWithImages(encodeJson(body), at(url, url), new Map([[url, data]]));
  expect(parsed(whole)).toEqual(
    chat(quoting, [image(data), image(data), { ...image(data), image_url: { url: data, detail: "low" } }]),
  );
  expect(sha256).toBeUndefined();
});

test("images by URL in the schema of a tool stay as they are, and multiply no image", async () => {
  const parameters = { const: image(url) };
  const tools = [{ type: "function", function: { name: "look", parameters } }];
  const request = { model: "m", tools, messages: [{ role: "user", content: [image(url)] }] };
  const { remoteImages = [], body } = readRequest("chat", Buffer.from(JSON.stringify(request)));
  const { body: whole } = await bodyWithImages(body, remoteImages, new Map([[url, data]]));
  expect(parsed(whole)).toMatchObject({ tools, messages: [{ role: "user", content: [image(data)] }] });
});

test("images by URL are no images to a machine, which would have its runtime fetch them", () => {
  expect(chatBody.safeParse(chat([image(url)])).error?.issues[0]?.message).toContain("must be a data URL");
  expect(chatBody.safeParse(chat([image(data)])).success).toBe(true);
});

test("images by URL that are large give the body a hash, since it is sent in parts", async () => {
  const large = `${data}${"A".repeat(300_000)}`;
  const { body, sha256 } = await bodyWithImages(encodeJson(chat([image(url)])), at(url), new Map([[url, large]]));
  expect(parsed(body)).toEqual(chat([image(large)]));
  expect(sha256).toBe(createHash("sha256").update(body).digest("hex"));
});

test.each([
  ["chat", { messages: [{ role: "user", content: [image(url)] }] }, "messages[0].content[0].image_url.url"],
  [
    "response",
    { input: [{ role: "user", content: [{ type: "input_image", image_url: url }] }] },
    "input[0].content[0].image_url",
  ],
  [
    "message",
    { max_tokens: 9, messages: [{ role: "user", content: [{ type: "image", source: { type: "url", url } }] }] },
    "messages[0].content[0].source.url",
  ],
] as const)(
  "images by URL of a request of the kind %s are named as their client sent them",
  async (outer, fields, param) => {
    const { remoteImages, body } = readRequest(outer, Buffer.from(JSON.stringify({ model: "m", ...fields })));
    expect(remoteImages).toEqual([{ url, param }]);
    const { body: whole } = await bodyWithImages(body, at(url), new Map([[url, data]]));
    expect(parsed(whole)).toMatchObject({ messages: [{ role: "user", content: [image(data)] }] });
  },
);

test.each(["1.1.1.1", "93.184.216.34", "172.15.255.255", "172.32.0.0", "100.63.255.255", "223.255.255.255"])(
  "an address is public of IPv4: %s",
  (address) => expect(isPublicAddress(address)).toBe(true),
);
test.each(["2606:4700:4700::1111", "2a00:1450:4001:80b::200e", "2003::1", "2620:fe::fe"])(
  "an address is public of IPv6: %s",
  (address) => expect(isPublicAddress(address)).toBe(true),
);

test.each([
  ["this host or nothing", "0.0.0.0 ::"],
  ["loopback", "127.0.0.1 127.255.255.254 ::1 ::ffff:127.0.0.1"],
  ["a private network", "10.0.0.1 172.16.0.1 172.31.255.255 192.168.1.1"],
  ["a carrier's network", "100.64.0.1"],
  ["metadata of a cloud", "169.254.169.254"],
  ["documentation or benchmarks", "192.0.2.1 198.19.0.1 2001:db8::1 3fff::1"],
  ["multicast or broadcast", "224.0.0.1 255.255.255.255 ff02::1"],
  ["reserved", "240.0.0.1"],
  ["an address of IPv4, mapped", "::ffff:a00:1 ::ffff:1.1.1.1"],
  ["a private network of IPv4, by NAT64, 6to4 or Teredo", "64:ff9b::10.0.0.1 2002:a00:1::1 2001:0:a00:1::1"],
  ["a network of IPv6 that is local", "fd00::1 fe80::1 fe80::1%eth0 fec0::1"],
  ["no address", "example.com 127.1"],
])("an address is not public as %s: %s", (_, addresses) => {
  for (const address of addresses.split(" ")) expect(isPublicAddress(address), address).toBe(false);
  expect(isPublicAddress("")).toBe(false);
});

test("an address is not public as any address of IPv4 inside one of IPv6", () => {
  fc.assert(
    fc.property(fc.ipV4(), (address) => {
      for (const prefix of ["::ffff:", "64:ff9b::", "::"]) expect(isPublicAddress(prefix + address)).toBe(false);
    }),
  );
});
