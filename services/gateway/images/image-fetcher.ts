import type { IncomingMessage } from "node:http";
import { Fault } from "#shared/fault/fault.ts";
import type { Clock } from "#shared/process/clock.ts";
import { isPublicAddress } from "#shared/process/networks.ts";
import { limits } from "#shared/protocol/limits.ts";
import { hostOf, isListed, type Reach, sendChecked } from "../http/checked-request.ts";

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

interface FetcherOptions extends Reach {
  /** Names of hosts; `*.example.com` is every host below `example.com`, and `*` every host. */
  readonly hosts: readonly string[];
  readonly clock: Pick<Clock, "after">;
}

/**
 * Fetches images from the hosts that the operator allows. All addresses of a host must be public. A redirect is checked
 * like a first URL.
 */
export class ImageFetcher {
  readonly #options: FetcherOptions;
  #fetches = 0;

  constructor(options: FetcherOptions) {
    this.#options = options;
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
    const { isPublic = isPublicAddress } = this.#options;
    try {
      const refusalOf = (address: string) => (isPublic(address) ? undefined : "is not public");
      return await sendChecked(url, { ...this.#options, headers: imageHeaders, signal, refusalOf });
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
    if (!isListed(hostOf(url), this.#options.hosts)) {
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
