import { lookup } from "node:dns/promises";
import type { IncomingMessage } from "node:http";
import { request as httpsRequest, type RequestOptions } from "node:https";
import { isIP, isIPv4, isIPv6 } from "node:net";
import { Fault } from "#shared/fault/fault.ts";
import { type Clock, untilAborted } from "#shared/process/clock.ts";
import { networkList } from "#shared/process/networks.ts";
import { limits } from "#shared/protocol/limits.ts";

/** Bounds the images of one request that a gateway fetches: their number, their bytes together, and the time for all. */
export const fetchedImagesMax = 16;
export const fetchedImageBytesMax = 8 * 1024 * 1024;
export const imageFetchMs = 10_000;
/** Bounds the requests whose images a gateway fetches at once. */
export const imageFetchesMax = 16;
export const imageUrlCharactersMax = 2_048;
export const imageRedirectsMax = 3;

/** An image of a request by its URL, and its path in the request. */
export interface RemoteImage {
  readonly url: string;
  readonly param: string;
}

interface FetcherOptions {
  /** Names of hosts; `*.example.com` is every host below `example.com`, and `*` every host. */
  readonly hosts: readonly string[];
  readonly clock: Pick<Clock, "after">;
  /** Returns all addresses of a host. */
  readonly resolve?: (host: string) => Promise<readonly string[]>;
  readonly isPublic?: (address: string) => boolean;
  /** More options of each connection, for tests. */
  readonly connection?: Pick<RequestOptions, "ca" | "port">;
}

/**
 * Fetches images from the hosts that the operator allows. A host's addresses are looked up once, all of them must be
 * public, and the connection goes to one that was checked: a second answer of DNS changes nothing. A redirect is
 * checked like a first URL.
 */
export class ImageFetcher {
  readonly #options: Required<FetcherOptions>;
  #fetches = 0;

  constructor(options: FetcherOptions) {
    this.#options = { resolve: addressesOf, isPublic: isPublicAddress, connection: {}, ...options };
  }

  /** Throws a `Fault` for the first image whose URL is not allowed. */
  assertAllowed(images: readonly RemoteImage[]): void {
    if (this.#options.hosts.length === 0) throw notFetched(images[0]?.param);
    const urls = new Set(images.map(({ url }) => url));
    if (urls.size > fetchedImagesMax) {
      throw refused(
        images[0]?.param,
        `A request may have at most ${fetchedImagesMax} images by URL (fetchedImagesMax).`,
      );
    }
    for (const { url, param } of images) this.#allowed(url, param);
  }

  /** Returns the images as data URLs, by their URLs. */
  async fetchAll(images: readonly RemoteImage[], signal: AbortSignal): Promise<ReadonlyMap<string, string>> {
    if (this.#fetches >= imageFetchesMax) {
      const message = `This gateway fetches the images of ${imageFetchesMax} requests already (imageFetchesMax).`;
      throw new Fault("server_is_overloaded", { message });
    }
    const failed = new AbortController();
    const timer = this.#options.clock.after(imageFetchMs, () => failed.abort(tooSlow(images)));
    const run = { signal: AbortSignal.any([signal, failed.signal]), bytesLeft: fetchedImageBytesMax };
    const byUrl = Map.groupBy(images, ({ url }) => url);
    this.#fetches += 1;
    try {
      const fetched = byUrl.entries().map(async ([url, uses]) => {
        const param = uses[0]?.param ?? "";
        const image = await this.#fetch(url, param, run);
        // The job's body holds the image once for each of its uses.
        run.bytesLeft -= image.length * (uses.length - 1);
        if (run.bytesLeft < 0) throw tooLarge(param);
        return [url, image] as const;
      });
      return new Map(await Promise.all(fetched));
    } catch (error) {
      failed.abort(error);
      throw error;
    } finally {
      timer.cancel();
      this.#fetches -= 1;
    }
  }

  async #fetch(first: string, param: string, run: FetchRun): Promise<string> {
    let url = this.#allowed(first, param);
    for (let hops = 0; hops <= imageRedirectsMax; hops++) {
      const response = await this.#get(url, param, run.signal);
      const { statusCode: status = 0, headers } = response;
      const isRedirect = status >= 300 && status < 400 && headers.location !== undefined;
      if (!isRedirect) return await readImage(response, param, run);
      response.destroy();
      if (!URL.canParse(headers.location ?? "", url)) throw unreachable(param, "the redirect has no valid URL");
      url = this.#allowed(new URL(headers.location ?? "", url).href, param);
    }
    throw refused(param, `The URL in '${param}' redirects more than ${imageRedirectsMax} times (imageRedirectsMax).`);
  }

  async #get(url: URL, param: string, signal: AbortSignal): Promise<IncomingMessage> {
    const host = hostOf(url);
    const { resolve, isPublic, connection } = this.#options;
    try {
      const addresses = isIP(host) === 0 ? await untilAborted(signal, resolve(host)) : [host];
      if (addresses.length === 0) throw new Error("the host has no address");
      if (!addresses.every(isPublic)) throw new Error("the host has an address that is not public");
      const { promise, resolve: answered, reject } = Promise.withResolvers<IncomingMessage>();
      const options = { headers: imageHeaders, agent: false, signal, lookup: lookupOf(addresses), ...connection };
      httpsRequest(url, options).once("response", answered).once("error", reject).end();
      return await promise;
    } catch (error) {
      signal.throwIfAborted();
      throw unreachable(param, error instanceof Error ? error.message : "the connection failed");
    }
  }

  /** Returns a URL that may be fetched. No port, user or password may be in it. */
  #allowed(text: string, param: string): URL {
    if (text.length > imageUrlCharactersMax) {
      const limit = `${imageUrlCharactersMax} characters (imageUrlCharactersMax)`;
      throw new Fault("string_too_long", { message: `The URL in '${param}' must have at most ${limit}.`, param });
    }
    const url = URL.parse(text);
    const isPlain = url?.protocol === "https:" && url.port === "" && url.username === "" && url.password === "";
    if (url === null || !isPlain) {
      throw refused(param, `The URL in '${param}' must begin with https:// and name no port, user or password.`);
    }
    if (!this.#options.hosts.some((pattern) => matches(pattern, hostOf(url)))) {
      throw refused(param, `The operator does not allow images from the host of '${param}' (TRUNKLINE_IMAGE_HOSTS).`);
    }
    return url;
  }
}

interface FetchRun {
  readonly signal: AbortSignal;
  /** The images of a request share their bytes. */
  bytesLeft: number;
}

const imageHeaders = { accept: "image/png,image/jpeg,image/webp,image/gif", "accept-encoding": "identity" };

async function addressesOf(host: string): Promise<string[]> {
  const found = await lookup(host, { all: true });
  return found.map(({ address }) => address);
}

/** Returns the name or the address of a URL: an address of IPv6 without its brackets, a name without a final dot. */
function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, "$1").replace(/\.$/, "");
}

function matches(pattern: string, host: string): boolean {
  return pattern === "*" || pattern === host || (pattern.startsWith("*.") && host.endsWith(pattern.slice(1)));
}

/** Returns a `lookup` for a connection that knows only the addresses that were checked. */
function lookupOf(addresses: readonly string[]): NonNullable<RequestOptions["lookup"]> {
  const checked = addresses.map((address) => ({ address, family: isIP(address) }));
  return (_host, { all }, done) => {
    const [first] = checked;
    if (all || first === undefined) done(null, checked);
    else done(null, first.address, first.family);
  };
}

async function readImage(response: IncomingMessage, param: string, run: FetchRun): Promise<string> {
  const { statusCode, headers } = response;
  try {
    if (statusCode !== 200) throw unreachable(param, `the answer has the status ${statusCode}`);
    if (Number(headers["content-length"] ?? 0) > run.bytesLeft) throw tooLarge(param);
    const pieces: Buffer[] = [];
    for await (const piece of response as AsyncIterable<Buffer>) {
      run.bytesLeft -= piece.byteLength;
      if (run.bytesLeft < 0) throw tooLarge(param);
      pieces.push(piece);
    }
    const bytes = Buffer.concat(pieces);
    const type = imageType(bytes);
    if (type === undefined)
      throw refused(param, `The URL in '${param}' must lead to an image: PNG, JPEG, WebP or GIF.`);
    return `data:image/${type};base64,${bytes.toString("base64")}`;
  } catch (error) {
    run.signal.throwIfAborted();
    throw error instanceof Fault ? error : unreachable(param, "the answer broke off");
  } finally {
    response.destroy();
  }
}

/** Returns the type of an image by its first bytes. What a server calls it may be anything. */
function imageType(bytes: Buffer): string | undefined {
  const beginning = bytes.toString("latin1", 0, 12);
  if (beginning.startsWith("\x89PNG\r\n\x1a\n")) return "png";
  if (beginning.startsWith("\xff\xd8\xff")) return "jpeg";
  if (beginning.startsWith("GIF8")) return "gif";
  return /^RIFF[^]{4}WEBP/.test(beginning) ? "webp" : undefined;
}

function notFetched(param: string | undefined): Fault {
  return refused(
    param,
    "An image must be sent as a data URL, 'data:image/png;base64,…'; this service fetches no images (TRUNKLINE_IMAGE_HOSTS).",
  );
}

function tooLarge(param: string): Fault {
  const limit = `${fetchedImageBytesMax} bytes (fetchedImageBytesMax)`;
  return refused(param, `The images by URL of a request may have ${limit} together; send larger ones as data URLs.`);
}

function tooSlow([image]: readonly RemoteImage[]): Fault {
  return refused(image?.param, `The images by URL could not be fetched within ${imageFetchMs} ms (imageFetchMs).`);
}

/** The reason stays in the log: it would tell a client about the gateway's own network. */
function unreachable(param: string, internal: string): Fault {
  return new Fault("invalid_value", { message: `The image in '${param}' could not be fetched.`, param, internal });
}

function refused(param: string | undefined, message: string): Fault {
  return new Fault("invalid_value", { message, param });
}

/**
 * Returns the body of a job with its images in the place of their URLs. The body is not parsed again, since it may be
 * large: in JSON, an unescaped quote stands only around a field or a whole text. Only as many as the messages
 * have are replaced: schemas of tools come behind the messages, and may hold the same field.
 */
export async function bodyWithImages(
  body: Uint8Array,
  remote: readonly RemoteImage[],
  images: ReadonlyMap<string, string>,
): Promise<{ readonly body: Uint8Array; readonly sha256: string | undefined }> {
  let whole = Buffer.from(body);
  for (const [url, { length: uses }] of Map.groupBy(remote, (image) => image.url)) {
    whole = replaced(whole, { before: imageField(url), after: imageField(images.get(url) ?? url), uses });
  }
  if (whole.byteLength <= limits.partBytes) return { body: whole, sha256: undefined };
  // Off the event loop: tens of megabytes take long.
  const sha256 = Buffer.from(await crypto.subtle.digest("SHA-256", whole)).toString("hex");
  return { body: whole, sha256 };
}

function imageField(url: string): string {
  return `"image_url":{"url":${JSON.stringify(url)}`;
}

function replaced(
  bytes: Buffer,
  { before, after, uses }: { readonly before: string; readonly after: string; readonly uses: number },
): Buffer<ArrayBuffer> {
  const pieces: Buffer[] = [];
  const next = Buffer.from(after);
  let from = 0;
  for (let left = uses; left > 0; left -= 1) {
    const at = bytes.indexOf(before, from);
    if (at === -1) throw new TypeError("a job's body lacks an image that its request has");
    pieces.push(bytes.subarray(from, at), next);
    from = at + Buffer.byteLength(before);
  }
  return Buffer.concat([...pieces, bytes.subarray(from)]);
}

/** Networks that are not the public internet: private, shared, local, for tests, multicast and reserved. */
const closed4 =
  "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/3";
/** The parts of the one network of IPv6 with public addresses that are not public or lead to addresses of IPv4. */
const closed6 = "2001::/23 2001:db8::/32 2002::/16 3fff::/20";
const closed = networkList(`${closed4} ${closed6}`.split(" "));
const open6 = networkList(["2000::/3"]);

/**
 * True for an address of the public internet. Addresses of IPv6 that hold one of IPv4 (mapped, NAT64, 6to4, Teredo) are
 * never public, since they could lead into a private network.
 */
export function isPublicAddress(address: string): boolean {
  if (isIPv4(address)) return !closed.check(address, "ipv4");
  return isIPv6(address) && open6.check(address, "ipv6") && !closed.check(address, "ipv6");
}
