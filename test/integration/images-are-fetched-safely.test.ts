import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:https";
import type { IncomingMessage, ServerResponse } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { systemClock } from "#shared/process/clock.ts";
import { Fault } from "#shared/fault/fault.ts";
import { isPublicAddress } from "#shared/process/networks.ts";
import {
  fetchedImageBytesMax,
  imageFetchesMax,
  imageFetchMs,
  ImageFetcher,
} from "../../services/gateway/images/image-fetcher.ts";
import { FakeLlamaServer } from "../harness/fake-llama-server.ts";
import { makeSelfSigned } from "../harness/self-signed.ts";
import { gatewayBefore } from "../harness/server-of-test.ts";
import { TurnableClock } from "../harness/turnable-clock.ts";
import { until } from "../harness/until.ts";

const png = Buffer.from("89504e470d0a1a0a0000000d49484452", "hex");
const pngUrl = `data:image/png;base64,${png.toString("base64")}`;
const url = "https://images.example/a.png";
const param = "messages[0].content[0].image_url.url";
const here = "127.0.0.1";

let server: Server;
let connection: { ca: Buffer; port: number };
let answer: (request: IncomingMessage, response: ServerResponse) => void;
let asked: string[];

beforeAll(async () => {
  const files = await makeSelfSigned("DNS:images.example,DNS:cdn.example,DNS:other.example");
  const [cert, key] = [readFileSync(files.TRUNKLINE_TLS_CERT), readFileSync(files.TRUNKLINE_TLS_KEY)];
  server = createServer({ cert, key }, (request, response) => {
    asked.push(`${request.headers.host?.split(":")[0]} ${request.url}`);
    answer(request, response);
  });
  server.listen(0, here);
  await once(server, "listening");
  connection = { ca: cert, port: (server.address() as AddressInfo).port };
});
afterAll(() => void server.close());
beforeEach(() => {
  asked = [];
  answer = (_, response) => void response.end(png);
});
afterEach(() => {
  vi.restoreAllMocks();
  server.closeAllConnections();
});

interface Setup {
  readonly hosts?: readonly string[];
  readonly addresses?: Readonly<Record<string, readonly (readonly string[])[]>>;
  readonly clock?: TurnableClock;
}

/** A fetcher to which this host counts as public. `addresses` are the answers of DNS for a name, one after the other. */
function fetcherOf({ hosts = ["images.example", "cdn.example"], addresses = {}, clock }: Setup = {}) {
  const lookedUp: string[] = [];
  const fetcher = new ImageFetcher({
    hosts,
    clock: clock ?? systemClock,
    connection,
    isPublic: (address) => address === here || isPublicAddress(address),
    async resolve(host) {
      const earlier = lookedUp.filter((each) => each === host).length;
      lookedUp.push(host);
      return addresses[host]?.[earlier] ?? [here];
    },
  });
  const fetch = (...urls: string[]) =>
    fetcher.fetchAll(
      urls.map((each) => ({ url: each, param })),
      new AbortController().signal,
    );
  return { fetcher, fetch, lookedUp };
}

async function refusalOf(fetched: Promise<unknown>): Promise<Fault> {
  return fetched.then(
    () => {
      throw new Error("the image was fetched");
    },
    (error: unknown) => Fault.from(error),
  );
}

test("an image by URL is fetched without a redirect, a cookie or a key, and becomes a data URL of its true type", async () => {
  let headers: IncomingMessage["headers"] = {};
  answer = (request, response) => {
    ({ headers } = request);
    response.setHeader("content-type", "text/html").end(png);
  };
  const { fetch } = fetcherOf();
  expect(await fetch(url)).toEqual(new Map([[url, pngUrl]]));
  expect(Object.keys(headers).toSorted()).toEqual(["accept", "accept-encoding", "connection", "host"]);
});

test.each([
  ["ffd8ffe000104a46494600", "jpeg"],
  ["474946383961", "gif"],
  ["524946460000000057454250", "webp"],
])("an image by URL that begins with %s is of the type %s", async (bytes, type) => {
  answer = (_, response) => void response.end(Buffer.from(bytes, "hex"));
  expect((await fetcherOf().fetch(url)).get(url)).toMatch(new RegExp(`^data:image/${type};base64,`));
});

test("an image by URL that a request has twice is fetched once", async () => {
  await fetcherOf().fetch(url, url);
  expect(asked).toEqual(["images.example /a.png"]);
});

test.each([
  ["http://images.example/a.png", "invalid_value", "https://"],
  ["https://images.example:8443/a.png", "invalid_value", "no port"],
  ["https://user:secret@images.example/a.png", "invalid_value", "user or password"],
  ["https://evil.example/a.png", "invalid_value", "does not allow"],
  ["https://images.example.evil.example/a.png", "invalid_value", "does not allow"],
  ["https://evilimages.example/a.png", "invalid_value", "does not allow"],
  ["https://127.0.0.1/a.png", "invalid_value", "does not allow"],
  [`https://images.example/${"a".repeat(3_000)}`, "string_too_long", "imageUrlCharactersMax"],
])("an image by URL is refused before any lookup: %s", async (wrong, code, says) => {
  const { fetcher, fetch, lookedUp } = fetcherOf();
  expect(() => fetcher.assertAllowed([{ url: wrong, param }])).toThrow(says);
  expect(await refusalOf(fetch(wrong))).toMatchObject({ code, param });
  expect([lookedUp, asked]).toEqual([[], []]);
});

test("an image by URL is refused where the operator allows no host, and says what to send", () => {
  const { fetcher } = fetcherOf({ hosts: [] });
  expect(() => fetcher.assertAllowed([{ url, param }])).toThrow("must be sent as a data URL");
});

test("an image by URL is allowed on hosts below a name with a star, and on that name itself only by its own entry", async () => {
  const { fetcher } = fetcherOf({ hosts: ["*.example"] });
  expect(() => fetcher.assertAllowed([{ url, param }])).not.toThrow();
  expect(() => fetcher.assertAllowed([{ url: "https://example/a.png", param }])).toThrow("does not allow");
  expect(() => fetcher.assertAllowed([{ url: "https://IMAGES.EXAMPLE./a.png", param }])).not.toThrow();
});

describe("an address that is not public", () => {
  test.each(["10.0.0.1", "169.254.169.254", "::ffff:10.0.0.1"])(
    "an address that is not public is never connected to, whatever name leads there: %s",
    async (address) => {
      const { fetch } = fetcherOf({ addresses: { "images.example": [[address]] } });
      const fault = await refusalOf(fetch(url));
      expect(fault).toMatchObject({ code: "invalid_value", param, internal: expect.stringContaining("not public") });
      expect(fault.message).not.toContain(address);
      expect(asked).toEqual([]);
    },
  );

  test("an address that is not public beside a public one refuses the host", async () => {
    const { fetch } = fetcherOf({ addresses: { "images.example": [[here, "192.168.0.1"]] } });
    expect(await refusalOf(fetch(url))).toMatchObject({ code: "invalid_value" });
    expect(asked).toEqual([]);
  });

  test.each(["https://10.0.0.1/", "https://0x0a000001/", "https://[::ffff:10.0.0.1]/", "https://localhost./"])(
    "an address that is not public is refused in the URL itself, also where every host is allowed: %s",
    async (literal) => {
      const { fetch } = fetcherOf({ hosts: ["*"], addresses: { localhost: [["::1"]] } });
      expect(await refusalOf(fetch(literal))).toMatchObject({ internal: expect.stringContaining("not public") });
      expect(asked).toEqual([]);
    },
  );

  test("an address that is not public in a second answer of DNS changes nothing: the connection goes to the address that was checked", async () => {
    const { fetch, lookedUp } = fetcherOf({ addresses: { "images.example": [[here], ["10.0.0.1"]] } });
    expect(await fetch(url)).toEqual(new Map([[url, pngUrl]]));
    expect(lookedUp).toEqual(["images.example"]);
  });
});

describe("a redirect", () => {
  const to = (location: string, status = 302) => {
    answer = (request, response) => {
      if (request.url === "/a.png") response.writeHead(status, { location }).end();
      else response.end(png);
    };
  };

  test.each(["https://cdn.example/b.png", "/b.png", "//cdn.example/b.png"])(
    "a redirect is followed to %s",
    async (location) => {
      to(location);
      const { fetch } = fetcherOf();
      expect(await fetch(url)).toEqual(new Map([[url, pngUrl]]));
      expect(asked).toHaveLength(2);
    },
  );

  test.each([
    ["https://other.example/b.png", "does not allow"],
    ["http://cdn.example/b.png", "https://"],
    ["https://cdn.example:22/", "no port"],
    ["https://169.254.169.254/latest/meta-data", "does not allow"],
    ["file:///etc/passwd", "https://"],
  ])("a redirect is refused like a first URL: %s", async (location, says) => {
    to(location, 307);
    expect((await refusalOf(fetcherOf().fetch(url))).message).toContain(says);
    expect(asked).toHaveLength(1);
  });

  test("a redirect to a host that DNS sends into a private network is refused", async () => {
    to("https://cdn.example/b.png");
    const { fetch } = fetcherOf({ addresses: { "cdn.example": [["10.0.0.1"]] } });
    expect(await refusalOf(fetch(url))).toMatchObject({ internal: expect.stringContaining("not public") });
    expect(asked).toHaveLength(1);
  });

  test("a redirect to the same host has its address checked again", async () => {
    to("/b.png");
    const { fetch, lookedUp } = fetcherOf({ addresses: { "images.example": [[here], ["10.0.0.1"]] } });
    expect(await refusalOf(fetch(url))).toMatchObject({ internal: expect.stringContaining("not public") });
    expect(lookedUp).toHaveLength(2);
  });

  test("a redirect after redirect ends at the limit", async () => {
    answer = (_, response) => void response.writeHead(302, { location: "/again" }).end();
    expect((await refusalOf(fetcherOf().fetch(url))).message).toContain("imageRedirectsMax");
    expect(asked).toHaveLength(4);
  });
});

test.each([
  ["a page", 200, "<html>", "must lead to an image"],
  ["an SVG", 200, "<svg xmlns='http://www.w3.org/2000/svg'/>", "must lead to an image"],
  ["nothing", 200, "", "must lead to an image"],
  ["an image that is not there", 404, png, "could not be fetched"],
  ["a redirect to nowhere", 302, "", "could not be fetched"],
])("an answer of a host is refused unless it is an image: %s", async (_, status, body, says) => {
  answer = (_request, response) => void response.writeHead(status).end(body);
  expect((await refusalOf(fetcherOf().fetch(url))).message).toContain(says);
});

test("an answer of a host is read up to the limit, whatever its length is said to be", async () => {
  answer = (_, response) => {
    response.write(png);
    const piece = Buffer.alloc(65_536);
    const more = (): void => void (response.destroyed || (response.write(piece) ? setImmediate(more) : undefined));
    response.on("drain", more);
    more();
  };
  expect((await refusalOf(fetcherOf().fetch(url))).message).toContain("fetchedImageBytesMax");
});

test("an answer of a host is refused at once by a length over the limit, which all images of a request share", async () => {
  answer = (_, response) => {
    response.writeHead(200, { "content-length": fetchedImageBytesMax + 1 });
    response.flushHeaders();
  };
  expect((await refusalOf(fetcherOf().fetch(url))).message).toContain("fetchedImageBytesMax");
  answer = (_, response) => void response.end(Buffer.concat([png, Buffer.alloc(fetchedImageBytesMax / 2)]));
  const both = refusalOf(fetcherOf().fetch(url, "https://cdn.example/b.png"));
  expect((await both).message).toContain("fetchedImageBytesMax");
});

test("an answer of a host counts for the limit in each place where a request has it", async () => {
  answer = (_, response) => void response.end(Buffer.concat([png, Buffer.alloc(fetchedImageBytesMax / 8)]));
  const { fetch } = fetcherOf();
  expect((await fetch(...Array.from({ length: 4 }, () => url))).size).toBe(1);
  const often = refusalOf(fetch(...Array.from({ length: 9 }, () => url)));
  expect((await often).message).toContain("fetchedImageBytesMax");
});

test("an answer of a host is waited for no longer than the limit, redirects and DNS included", async () => {
  const clock = new TurnableClock();
  answer = (_, response) => response.flushHeaders();
  const slow = refusalOf(fetcherOf({ clock }).fetch(url));
  await until(() => asked.length === 1, { what: "the request for the image" });
  clock.advance(imageFetchMs);
  expect((await slow).message).toContain("imageFetchMs");
});

test("an answer of a host is let go of when the client leaves, and no others are begun beyond the limit", async () => {
  answer = () => undefined;
  const { fetcher } = fetcherOf();
  const leaving = new AbortController();
  const images = [{ url, param }];
  const waiting = Array.from({ length: imageFetchesMax }, () => refusalOf(fetcher.fetchAll(images, leaving.signal)));
  await until(() => asked.length === imageFetchesMax, { what: "all requests for images" });
  const more = await refusalOf(fetcher.fetchAll(images, leaving.signal));
  expect(more).toMatchObject({ code: "server_is_overloaded", message: expect.stringContaining("imageFetchesMax") });
  leaving.abort(new Fault("client_closed", { message: "The client has left." }));
  for (const fault of await Promise.all(waiting)) expect(fault.code).toBe("client_closed");
  answer = (_, response) => void response.end(png);
  expect(await fetcher.fetchAll(images, new AbortController().signal)).toEqual(new Map([[url, pngUrl]]));
});

test("a gateway with TRUNKLINE_IMAGE_HOSTS sends a machine the images in the place of their URLs, and refuses other hosts before any machine", async () => {
  await using runtime = await FakeLlamaServer.start({ model: { name: "eyes", vision: true } });
  const env = { TRUNKLINE_IMAGE_HOSTS: "images.example,*.allowed.example" };
  const gateway = await gatewayBefore("llama-server", runtime, env);
  const { fetcher } = fetcherOf();
  vi.spyOn(ImageFetcher.prototype, "fetchAll").mockImplementationOnce((...of) => fetcher.fetchAll(...of));
  const { endpoint } = await gateway.issue();
  const ask = (of: string) =>
    endpoint.chat({
      model: "eyes",
      messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: of } }] }],
    });
  expect((await ask(url)).status).toBe(200);
  expect(runtime.requests.at(-1)?.body).toMatchObject({
    messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: pngUrl } }] }],
  });
  const source = { type: "url", url };
  const messages = [{ role: "user", content: [{ type: "image", source }] }];
  const counted = await endpoint.post("/messages/count_tokens", { model: "eyes", messages });
  expect([counted.status, counted.headers.get("x-trunkline-estimate")]).toEqual([200, "true"]);
  expect(JSON.stringify(runtime.requests.map(({ body }) => body))).not.toContain("images.example");
  const refused = await ask("https://other.example/a.png");
  expect(refused.status).toBe(400);
  expect(await refused.json()).toMatchObject({ error: { code: "invalid_value", param } });
});
